module dcs-tui

go 1.26
