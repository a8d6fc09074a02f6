#!/bin/sh
# For snakemake --jobscript. Snakemake 7 does not quote the directory in "cd DIRECTORY", so this cd
# takes all its words as one directory.
# properties = {properties}
cd() {{ command cd "$*"; }}
{exec_job}
