package wire

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"
)

// Events writes server-sent events. Its methods are for one goroutine.
type Events struct {
	w       http.ResponseWriter
	control *http.ResponseController
	buffer  bytes.Buffer
}

// slowest is how long one write may take: a client that does not read is let go.
const slowest = 30 * time.Second

// NewEvents begins the answer.
func NewEvents(w http.ResponseWriter) (*Events, error) {
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no") // proxies pass each event on at once
	w.WriteHeader(http.StatusOK)
	e := &Events{w: w, control: http.NewResponseController(w)}
	return e, e.Comment("")
}

// Event writes one event: its id, where it has one, its name and its data, in one
// write. The data must be one line, as JSON is.
func (e *Events) Event(id, name string, data []byte) error {
	b := &e.buffer
	b.Reset()
	if id != "" {
		b.WriteString("id: " + oneLine(id) + "\n")
	}
	if name != "" {
		b.WriteString("event: " + oneLine(name) + "\n")
	}
	b.WriteString("data: ")
	b.Write(data)
	b.WriteString("\n\n")
	return e.send()
}

// Comment writes what clients do not see. It keeps a connection alive.
func (e *Events) Comment(text string) error {
	e.buffer.Reset()
	e.buffer.WriteString(": " + oneLine(text) + "\n\n")
	return e.send()
}

// Leaving is the name of the last event of a server that stops.
const Leaving = "leaving"

// Leave writes the last event of a server that stops: connect again after so many
// milliseconds, and name the last event that has an id. Browsers do so by themselves. The
// times differ, so that not all clients come to the next server at once.
func (e *Events) Leave() error {
	ms := 100 + rand.IntN(900)
	e.buffer.Reset()
	fmt.Fprintf(&e.buffer, "retry: %d\nevent: %s\ndata: {\"type\":\"%s\",\"retry\":%d}\n\n", ms, Leaving, Leaving, ms)
	return e.send()
}

func (e *Events) send() error {
	if err := e.control.SetWriteDeadline(time.Now().Add(slowest)); err != nil {
		return err
	}
	if _, err := e.w.Write(e.buffer.Bytes()); err != nil {
		return err
	}
	return e.control.Flush()
}

func oneLine(s string) string {
	return strings.NewReplacer("\n", " ", "\r", " ").Replace(s)
}
