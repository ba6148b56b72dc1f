// Package queue keeps calls that run later.
//
// A [Job] is a call with the time and the priority at which it is to run. A
// [Queue] keeps jobs; a [Worker] takes them in order of priority and makes their
// calls. Everything that must happen once rests on the queue, never on the memory
// of a worker: any number of workers, in one process or in several, may share one
// queue.
//
// A worker makes a call like anybody else: the rules, grants and approvals are
// checked when it starts, not when it was added. Each attempt has a key
// ([Job.Key]) under which the runner gives a call its effect once. So a job whose
// worker died is made again with the same key: the runner returns the result of a
// call that ended, runs one that did not begin or that changes nothing, and says
// of any other that its outcome is unknown. That is then the state of the job,
// and only a person can have it run again.
package queue
