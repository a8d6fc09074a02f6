// Package forecast predicts when a run ends. RunTimes learns how long the jobs of a queue take, a
// Distribution describes that for one job, and Workload.Forecast computes from it when the last job
// ends. All times are in seconds.
//
// The package knows no jobs, and hosts only by their names. sched/eta.go collects the workload.
package forecast
