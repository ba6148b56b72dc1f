package llmtest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"time"

	"ken/llm"
)

// breaks leaves the loop after the first chunk of an answer that goes on.
func breaks(k *kit) error {
	return k.leavesNothing(func() error {
		return k.with(Always(Reply{Text: "one two three", Hold: make(chan struct{})}), func(ctx context.Context, m llm.Model, server *Server) error {
			for c, err := range m.Generate(ctx, hello()) {
				if err != nil {
					return fmt.Errorf("Generate() = error %w", err)
				}
				if c.Text != "" {
					break
				}
			}
			return k.hungUp(server)
		})
	})
}

// cancels ends the context in the middle of an answer.
func cancels(k *kit) error {
	return k.leavesNothing(func() error {
		return k.with(Always(Reply{Text: "one two three", Hold: make(chan struct{})}), func(ctx context.Context, m llm.Model, server *Server) error {
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			var last error
			for c, err := range m.Generate(ctx, hello()) {
				if c.Text != "" {
					cancel()
				}
				last = err
			}
			if !errors.Is(last, context.Canceled) {
				return fmt.Errorf("Generate() with a context that ended = error %v, want %v", last, context.Canceled)
			}
			return errors.Join(k.hungUp(server), want("requests", len(server.Requests()), 1))
		})
	})
}

// cancelsEarly ends the context while the server says nothing, and before the
// request.
func cancelsEarly(k *kit) error {
	return k.leavesNothing(func() error {
		asked := make(chan struct{})
		hang := func(Seen) Reply { close(asked); return Reply{Fault: Hang} }
		err := k.with(hang, func(ctx context.Context, m llm.Model, server *Server) error {
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			go func() { <-asked; cancel() }()
			a := gather(ctx, m, hello())
			if !errors.Is(a.err, context.Canceled) {
				return fmt.Errorf("Generate() with a context that ended = error %v, want %v", a.err, context.Canceled)
			}
			_, quiet := server.idle(k.patience / 3)
			return errors.Join(want("the connection is closed", quiet, true), want("requests", len(server.Requests()), 1))
		})
		return errors.Join(err, k.with(Always(Reply{Text: "x"}), func(ctx context.Context, m llm.Model, server *Server) error {
			ctx, cancel := context.WithCancel(ctx)
			cancel()
			a := gather(ctx, m, hello())
			if !errors.Is(a.err, context.Canceled) {
				return fmt.Errorf("Generate() with a context that had ended = error %v, want %v", a.err, context.Canceled)
			}
			return want("requests", len(server.Requests()), 0)
		}))
	})
}

// cancelsWaiting ends the context in the wait between two tries.
func cancelsWaiting(k *kit) error {
	return k.leavesNothing(func() error {
		asked := make(chan struct{}, 10)
		busy := func(Seen) Reply { asked <- struct{}{}; return Reply{Fault: Rate, RetryAfter: 30 * time.Second} }
		return k.with(busy, func(ctx context.Context, m llm.Model, server *Server) error {
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			go func() {
				<-asked
				server.idle(k.patience / 3)
				cancel()
			}()
			begun := time.Now()
			a := gather(ctx, m, hello())
			if !errors.Is(a.err, context.Canceled) {
				return fmt.Errorf("Generate() with a context that ended in a wait = error %v, want %v", a.err, context.Canceled)
			}
			if took := time.Since(begun); took > k.patience/2 {
				return fmt.Errorf("Generate() ended %v after its context", took)
			}
			return want("requests", len(server.Requests()), 1)
		})
	})
}

// hungUp checks that the server was left alone.
func (k *kit) hungUp(server *Server) error {
	gone, quiet := server.idle(k.patience / 3)
	if !quiet || gone != 1 {
		return fmt.Errorf("the server saw %d clients leave and is idle: %v, want the connection closed at once", gone, quiet)
	}
	return nil
}

// leavesNothing compares the goroutines before and after.
func (k *kit) leavesNothing(do func() error) error {
	before := goroutines()
	if err := do(); err != nil {
		return err
	}
	var left []string
	for end := time.Now().Add(k.patience / 3); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		left = nil
		for id, stack := range goroutines() {
			if _, there := before[id]; !there {
				left = append(left, stack)
			}
		}
		if len(left) == 0 {
			return nil
		}
	}
	return fmt.Errorf("%d goroutines were left behind:\n%s", len(left), strings.Join(left, "\n\n"))
}

// goroutines are all stacks but the caller's, by the number of each.
func goroutines() map[string]string {
	buffer := make([]byte, 1<<20)
	for {
		n := runtime.Stack(buffer, true)
		if n < len(buffer) {
			buffer = buffer[:n]
			break
		}
		buffer = make([]byte, 2*len(buffer))
	}
	all := map[string]string{}
	for i, stack := range strings.Split(string(buffer), "\n\n") {
		if id, _, ok := strings.Cut(stack, " ["); ok && i > 0 {
			all[id] = stack
		}
	}
	return all
}

var _ llm.Model = (*Fake)(nil)
