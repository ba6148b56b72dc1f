package sandbox

import "context"

// Run runs one program to its end, within its limits, and kills whatever it
// leaves behind. An error means that the tool did not run: a [*Refusal], or
// ctx's. Everything a tool that ran did is an [Outcome], also when it was
// stopped: by its limits, or because ctx ended. What holds on systems other
// than Linux is in the package comment: there what a tool leaves behind may
// survive it, and a requirement of any isolation is refused.
//
// Run may be called from many goroutines at once.
func Run(ctx context.Context, spec Spec) (Outcome, error) {
	p, err := Start(ctx, spec)
	if err != nil {
		return Outcome{}, err
	}
	return p.Wait()
}

// A Process is a tool that runs. Its methods may be called from many
// goroutines at once.
type Process struct {
	pid       int
	isolation Isolation
	done      chan struct{}
	outcome   Outcome // once done
	err       error   // once done
}

// Pid is the process that everything the tool makes lies beneath: its helper
// where there is one, which the tool sees as process 1 or not at all.
func (p *Process) Pid() int { return p.pid }

// Isolation says what holds it.
func (p *Process) Isolation() Isolation { return p.isolation }

// Done is closed when the tool has ended, and everything it made with it.
func (p *Process) Done() <-chan struct{} { return p.done }

// Wait waits for the end and tells of it, each time alike. An error means that
// it cannot be told how the tool ended.
func (p *Process) Wait() (Outcome, error) {
	<-p.done
	return p.outcome, p.err
}
