//go:build unix

package scripttest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"ken/internal/testkit"
)

// Commands of scripts about requests that run beside them, and streams of events.

// An exchange is a request that runs beside its script.
type exchange struct {
	cancel context.CancelFunc
	over   chan struct{} // closed when its answer has ended
	err    error         // why it did so early
}

// follow NAME [-H NAME=VALUE]… URL [BODY]: asks as get or post do, beside the
// script. Of a stream the file NAME has a line for each event, as it comes: its
// id, its name and its data, as JSON. Of another answer it has the body. over
// waits for its end.
func follow(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: follow NAME [-H NAME=VALUE]… URL [BODY]")
	}
	name, args := args[0], args[1:]
	method, rest := http.MethodGet, args
	for len(rest) > 2 && rest[0] == "-H" {
		rest = rest[2:]
	}
	if len(rest) == 2 {
		method = http.MethodPost
	}
	req, _ := requestOf(ts, method, args)
	ctx, cancel := context.WithCancel(context.Background())
	x := &exchange{cancel: cancel, over: make(chan struct{})}
	file, err := os.Create(ts.MkAbs(name))
	ts.Check(err)
	go func() {
		defer close(x.over)
		x.err = errors.Join(x.take(req.WithContext(ctx), file), file.Close())
	}()
	of(ts).exchanges[name] = x
	ts.Defer(func() {
		cancel()
		<-x.over
	})
}

// take writes down what is answered.
func (x *exchange) take(req *http.Request, to io.Writer) error {
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		_, err := io.Copy(to, resp.Body)
		return err
	}
	var event struct {
		ID    string          `json:"id,omitempty"`
		Event string          `json:"event,omitempty"`
		Data  json.RawMessage `json:"data"`
	}
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		field, value, _ := strings.Cut(lines.Text(), ": ")
		switch field {
		case "id":
			event.ID = value
		case "event":
			event.Event = value
		case "data":
			event.Data = json.RawMessage(value)
		case "":
			if event.Data == nil {
				continue // of a comment
			}
			line, err := json.Marshal(event)
			if err != nil {
				return fmt.Errorf("%s: %w", event.Data, err)
			}
			if _, err := to.Write(append(line, '\n')); err != nil {
				return err
			}
			event.ID, event.Event, event.Data = "", "", nil
		}
	}
	return lines.Err()
}

func exchangeOf(ts *testscript.TestScript, neg bool, args []string) *exchange {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: over|hangup NAME")
	}
	x := of(ts).exchanges[args[0]]
	if x == nil {
		ts.Fatalf("nothing follows as %s", args[0])
	}
	return x
}

// over NAME: what follow asked for is answered to its end.
func over(ts *testscript.TestScript, neg bool, args []string) {
	x := exchangeOf(ts, neg, args)
	if !testkit.Until(func() bool { return ended(x.over) }) {
		ts.Fatalf("%s does not end:\n%s", args[0], ts.ReadFile(args[0]))
	}
	if x.err != nil {
		ts.Fatalf("%s ended early: %v\n%s", args[0], x.err, ts.ReadFile(args[0]))
	}
}

// hangup NAME: the client of follow goes.
func hangup(ts *testscript.TestScript, neg bool, args []string) {
	x := exchangeOf(ts, neg, args)
	x.cancel()
	<-x.over
}

// rising FILE: of the events that follow wrote all have ids, each with a greater
// number than the one before it.
func rising(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: rising FILE")
	}
	last := int64(-1)
	for line := range strings.Lines(ts.ReadFile(args[0])) {
		var event struct{ ID string }
		ts.Check(json.Unmarshal([]byte(line), &event))
		_, digits, _ := strings.Cut(event.ID, "-")
		n, err := strconv.ParseInt(digits, 10, 64)
		if err != nil || n <= last {
			ts.Fatalf("%q comes after %d:\n%s", event.ID, last, ts.ReadFile(args[0]))
		}
		last = n
	}
	if last < 0 {
		ts.Fatalf("%s has no event", args[0])
	}
}

// joined FILE TO: writes the events that follow wrote in the one way that those
// come to who were there from the beginning and those who came back: fragments of
// one text together, and without the word that nothing runs.
func joined(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: joined FILE TO")
	}
	type event struct {
		ID   string         `json:"id"`
		Data map[string]any `json:"data"`
	}
	var list []event
	for line := range strings.Lines(ts.ReadFile(args[0])) {
		var next event
		ts.Check(json.Unmarshal([]byte(line), &next))
		text, isText := next.Data["text"].(string)
		last := len(list) - 1
		switch {
		case next.Data["type"] == "idle":
		case next.Data["type"] == "delta" && isText && last >= 0 && list[last].Data["type"] == "delta" && list[last].Data["text"] != nil:
			list[last].ID, list[last].Data["text"] = next.ID, list[last].Data["text"].(string)+text
		default:
			list = append(list, next)
		}
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	for _, e := range list {
		ts.Check(encoder.Encode(e))
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), out.Bytes(), 0o644))
}
