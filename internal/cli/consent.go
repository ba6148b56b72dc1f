package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"ken/capability"
	"ken/internal/app"
	"ken/internal/cli/asking"
	"ken/internal/cli/chat"
	"ken/internal/cli/output"
	"ken/internal/govern/approval"
	"ken/internal/run/runner"
)

// interactive reports whether there is a person at both ends.
func (c *environment) interactive() bool {
	f, ok := c.in.(*os.File)
	return ok && c.out.Terminal && !c.json && term.IsTerminal(int(f.Fd()))
}

// A consentPrompt asks the person at the terminal whether a call may run.
type consentPrompt struct{ *environment }

// answer puts the question that a call failed with to the person, and reports
// whether to make the call again.
func (c consentPrompt) answer(ctx context.Context, a *app.App, r runCall, call *capability.Call, err error) (again bool, _ error) {
	q, ok := errors.AsType[*runner.Question](err)
	switch {
	case !ok:
		return false, nil
	case q.Name == runner.AnswerConsent && q.Ticket != "" && c.interactive():
		return c.consent(ctx, a, call, q)
	case q.Name != runner.AnswerAgain || call.Answers[runner.AnswerAgain] != nil:
		return false, nil
	case !r.again && c.interactive():
		c.out.Linef("%s", output.Line(q.Text))
		fmt.Fprintf(c.out, "%s [y/N]: ", c.out.Style(output.Yellow, "Run it again?"))
		line, err := readLine(ctx, c.in)
		if err != nil {
			return false, err
		}
		r.again = strings.HasPrefix(strings.ToLower(strings.TrimSpace(line)), "y")
	}
	if !r.again {
		return false, nil
	}
	id, err := json.Marshal(q.Effect)
	if call.Answers == nil {
		call.Answers = map[string]json.RawMessage{}
	}
	call.Answers[runner.AnswerAgain] = id
	return true, err
}

// consent shows what a call would do and takes the person's answer. It reports
// whether to make the call again.
func (c consentPrompt) consent(ctx context.Context, a *app.App, call *capability.Call, q *runner.Question) (bool, error) {
	desk, derr := a.Desk()
	if derr != nil {
		return false, derr
	}
	t, derr := desk.Get(ctx, q.Ticket)
	if derr != nil {
		return false, derr
	}
	c.asks().Show(t, a.Questions.Lines(t))
	answer, derr := c.decide(ctx, t)
	if derr != nil {
		return false, derr
	}
	answer.By = a.Principal
	if _, derr := a.Approvals.Settle(ctx, t.ID, answer); derr != nil {
		return false, derr
	}
	// The call that names its ticket is answered by it, also with a no.
	id, derr := json.Marshal(t.ID)
	call.Answers = map[string]json.RawMessage{runner.AnswerConsent: id}
	return true, derr
}

// decide asks until there is an answer that counts; none is a no.
func (c consentPrompt) decide(ctx context.Context, t approval.Ticket) (approval.Answer, error) {
	return c.asks().Decide(ctx, t)
}

// asks returns what asks the person at the terminal about requests.
func (c *environment) asks() asking.Prompt {
	return asking.Prompt{Out: c.out, Read: func(ctx context.Context) (string, error) { return readLine(ctx, c.in) }, Forget: func() {
		if f, ok := c.in.(*os.File); ok {
			chat.Flush(f)
		}
	}}
}

// readLine waits for a line, or for ctx. The reader that is left behind goes
// with the process.
func readLine(ctx context.Context, r io.Reader) (string, error) {
	type read struct {
		line string
		err  error
	}
	done := make(chan read, 1)
	go func() {
		line, err := bufio.NewReader(r).ReadString('\n')
		done <- read{line, err}
	}()
	select {
	case got := <-done:
		if errors.Is(got.err, io.EOF) {
			got.err = nil // no answer is no
		}
		return got.line, got.err
	case <-ctx.Done():
		return "", ctx.Err()
	}
}
