// Package cli is Ken's command line: it parses, prints, and turns errors into
// exit statuses. What the commands do lies below, behind the door.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"syscall"

	"ken/capability"
	"ken/internal/cli/output"
	"ken/internal/memory"
	"ken/internal/run/sandbox"
)

// Exit statuses, which scripts rely on.
const (
	exitDone     = 0
	exitFailed   = 1
	exitUsage    = 2
	exitRefused  = 3
	exitWaiting  = 4
	exitTimedOut = 124

	exitInterrupted = 130
)

// Main runs the program and returns its exit status.
func Main(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	if err := sandbox.Shield(); err != nil {
		fmt.Fprintf(stderr, "ken: %v; other processes of this user can read its secrets\n", err)
	}
	if os.Getenv("GOGC") == "" {
		memory.CollectLate(debug.SetGCPercent)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	defer endAtOnce()()
	c := &environment{out: output.New(stdout), in: stdin}
	c.out.Before = c.progress.Hide
	c.err = output.Aside{W: stderr, Before: c.progress.Hide}
	root := newRoot(c)
	root.SetArgs(negatives(args))
	root.SetIn(stdin)
	root.SetOut(c.out)
	root.SetErr(c.err)
	err := root.ExecuteContext(ctx)
	if err == nil && c.out.Err() != nil && !errors.Is(c.out.Err(), syscall.EPIPE) {
		err = fmt.Errorf("write the output: %w", c.out.Err())
	}
	var printed printedError
	if err != nil && !errors.Is(err, errSilent) && !errors.As(err, &printed) {
		c.explain(err)
	}
	return status(err)
}

// negatives moves a negative number that is the value of config set behind "--",
// so that it is not read as a flag.
func negatives(args []string) []string {
	verb := slices.Index(args, "set")
	if verb < 1 || !slices.Contains(args[:verb], "config") || slices.Contains(args, "--") {
		return args
	}
	for i := verb + 1; i < len(args); i++ {
		if a := args[i]; len(a) > 1 && a[0] == '-' && (a[1] == '.' || a[1] >= '0' && a[1] <= '9') {
			return append(slices.Delete(slices.Clone(args), i, i+1), "--", a)
		}
	}
	return args
}

// endAtOnce makes a second signal end the program at once, as if it were not
// caught, until the returned function is called. It listens from the start, so
// that two signals in quick succession are both seen. If a shell made this
// background program ignore interrupts, the exit status is the one a shell
// would report.
func endAtOnce() (stop func()) {
	asked := make(chan os.Signal, 2)
	done := make(chan struct{})
	ignored := signal.Ignored(os.Interrupt)
	signal.Notify(asked, os.Interrupt, syscall.SIGTERM)
	go func() {
		for n := 0; ; n++ {
			select {
			case <-done:
				return
			case s := <-asked:
				if n == 0 {
					continue // the context handles the first signal
				}
				signal.Reset(os.Interrupt, syscall.SIGTERM)
				self, err := os.FindProcess(os.Getpid())
				if err != nil || s == os.Interrupt && ignored || self.Signal(s) != nil {
					os.Exit(exitInterrupted)
				}
			}
		}
	}()
	return func() {
		signal.Stop(asked)
		close(done)
	}
}

// errSilent ends a command with status 1 when all was said already.
var errSilent = errors.New("see above")

// A usageError is a mistake in how the program was called.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func status(err error) int {
	var usage usageError
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &usage):
		return exitUsage
	case errors.Is(err, errSilent):
		return exitFailed
	}
	switch capability.KindOf(err) {
	case capability.Denied:
		return exitRefused
	case capability.Unapproved, capability.InputNeeded:
		return exitWaiting
	case capability.Timeout:
		return exitTimedOut
	}
	return exitFailed
}
