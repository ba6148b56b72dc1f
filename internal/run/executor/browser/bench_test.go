package browser

import (
	"testing"
	"time"
)

// BenchmarkBrowser starts a browser, opens a page of 200 KB in it, and reads that
// page again and again in each form.
func BenchmarkBrowser(b *testing.B) {
	needChromium(b)
	r, s := newRig(b, nil), newSite(b)
	ms := func(work func()) float64 {
		begun := time.Now()
		work()
		return float64(time.Since(begun).Microseconds()) / 1000
	}
	least := map[string]float64{}
	note := func(name string, took float64) {
		if have, ok := least[name]; !ok || took < have {
			least[name] = took
		}
	}
	for b.Loop() {
		r.do(b, "s", "close", nil)
		note("start-ms", ms(func() { r.do(b, "s", "open", object{"url": s.URL + "/two"}) }))
		r.do(b, "s", "open", object{"url": s.URL + "/big"})
		for range 5 {
			note("read-ms", ms(func() { r.do(b, "s", "read", nil) }))
		}
	}
	b.ReportMetric(0, "ns/op")
	for name, took := range least {
		b.ReportMetric(took, name)
	}
}
