//go:build unix

package api

import (
	"context"
	"io"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"ken/internal/testkit/executortest"
)

// BenchmarkRequest is a GET with a path and a query through the executor, and
// beside it a plain client that reads the answer.
func BenchmarkRequest(b *testing.B) {
	answer := []byte(`{"items":[` + strings.Repeat(`{"id":1,"name":"a name of some length"},`, 50) + `{}]}`)
	h := newHouse(b, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Write(answer)
	})
	h.op("get", "GET", "/items/{id}", map[string]string{"in": `{"id":"path","q":"query"}`})
	call := executortest.Call("tool:get", `{"id":"a b","q":"x"}`)
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(b.Context(), 290*time.Second) // the runner's context has an end, too
	defer cancel()
	ours := func() {
		if r, err := h.Invoke(ctx, call); err != nil || r.Failed {
			b.Fatal(r, err)
		}
	}
	plain := func() {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, h.server.URL+"/items/a%20b?q=x", nil)
		executortest.Must(b, err)
		req.Header.Set("Accept", "application/json")
		resp, err := client.Do(req)
		executortest.Must(b, err)
		if _, err := io.ReadAll(resp.Body); err != nil {
			b.Fatal(err)
		}
		resp.Body.Close()
	}
	ours()
	plain()
	// On one processor: on several, the time to wake other threads is a matter of
	// chance, and as long as what is measured.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	// The two take turns, so that what else the machine does falls on both. The
	// two allocate as many bytes, so they share the cost of collecting them.
	var mine time.Duration
	var ratios []float64
	const batch = 100
	for b.Loop() {
		runtime.GC() // so that none falls into either
		one := cpu(b, func() { repeat(batch, ours) })
		runtime.GC()
		other := cpu(b, func() { repeat(batch, plain) })
		mine += one
		ratios = append(ratios, float64(one)/float64(other))
	}
	slices.Sort(ratios)
	b.ReportMetric(ratios[len(ratios)/2], "times-net/http")
	b.ReportMetric(float64(mine.Microseconds())/float64(b.N*batch), "cpu-us/op")
}

func repeat(n int, f func()) {
	for range n {
		f()
	}
}

// cpu returns the processor time that f takes, the server's part included.
func cpu(b *testing.B, f func()) time.Duration {
	now := func() time.Duration {
		var u syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
			b.Skip("cannot here: this system does not tell processor time")
		}
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	begun := now()
	f()
	return now() - begun
}
