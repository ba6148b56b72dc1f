package metrics

import (
	"math"
	"runtime"
	"strconv"
	"strings"
	"time"

	"ken/internal/find/outcome"
)

// Meters are what Ken counts. They are safe for concurrent use.
type Meters struct {
	requests Counter
	answered Histogram
	streams  Gauge
	running  Gauge

	turns    Counter
	turnTook Histogram
	steps    Counter
	tokens   Counter
	cost     Counter
	shown    Counter

	found   Histogram
	calls   Counter
	called  Histogram
	refused Counter

	// By the names of OpenTelemetry's conventions.
	answers    Histogram // of MCP requests
	operations Histogram // turns and calls
	usage      Histogram // tokens
}

// Readings are read at every scrape. What is nil is not there.
// Each must be quick and safe for concurrent use.
type Readings struct {
	Version string
	Started time.Time

	Calls   func() (running, waiting int) // of this process
	Pending func() (int, error)           // questions that wait for a person, of all callers
	Catalog func() Catalog
	Audit   func() Audit
	Cluster func() Cluster // nil: this is the only replica that there can be
}

// Cluster is how the replicas stand that have the same store, as this one sees it.
type Cluster struct {
	Replica, Host string // of this one: its name, and that of its machine
	Live          int    // replicas that run, this one included
	Lag           time.Duration
	Current       func() bool // asks the store where that is not known

	Sent, Received uint64 // queries that sent events of turns to others, and messages that came
}

// Catalog is how a catalog stands.
type Catalog struct {
	Capabilities, Available, Quarantined, Problems int
	Version                                        uint64
}

// Audit is how the trail fares.
type Audit struct {
	Written  uint64 // records, since the start
	Poisoned bool   // nothing can be written any more
}

// NewMeters puts Ken's numbers into a registry.
func NewMeters(r *Registry, read Readings) *Meters {
	// In seconds: of answers, of what may take long, and of finding.
	quick := []float64{0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10}
	slow := []float64{0.005, 0.025, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600}
	fast := []float64{0.00002, 0.00005, 0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5}
	// As OpenTelemetry recommends them.
	operation := []float64{0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300}
	tokenSteps := []float64{1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864}
	m := &Meters{
		requests: r.Counter("ken_http_requests_total", "Requests that were answered, by route and class of status.", "route", "status"),
		answered: r.Histogram("ken_http_request_seconds", "How long answers took, streams left out.", quick, "route"),
		streams:  r.Gauge("ken_http_streams", "Event streams that are open."),
		running:  r.Gauge("ken_turns_running", "Turns of conversations that run now."),
		turns:    r.Counter("ken_turns_total", "Turns of conversations that are over, by how they ended.", "end"),
		turnTook: r.Histogram("ken_turn_seconds", "How long turns were.", slow),
		steps:    r.Counter("ken_model_requests_total", "Requests to models."),
		tokens:   r.Counter("ken_model_tokens_total", "Tokens as providers counted them, by what they were billed as.", "as"),
		cost:     r.Counter("ken_model_cost_dollars_total", "What models cost, where the price is known."),
		shown:    r.Counter("ken_capability_tokens_total", "Tokens for capabilities over all requests: what was shown, and what all schemas would have been.", "what"),
		found:    r.Histogram("ken_find_seconds", "How long finding took.", fast),
		calls:    r.Counter("ken_calls_total", "Calls of capabilities that ran (worked, failed) or that a rule denied (refused). Calls that could not begin, because the arguments are invalid, a limit or an approval is waited for, or a server is down, are in the audit log.", "status"),
		called:   r.Histogram("ken_call_seconds", "How long calls ran.", slow),
		refused:  r.Counter("ken_refusals_total", "Calls that a rule forbade, by its class.", "rule"),

		answers: r.Histogram("mcp_server_operation_duration_seconds", "How long MCP requests took, by method and kind of error (OpenTelemetry mcp.server.operation.duration).",
			operation, "mcp_method_name", "error_type"),
		operations: r.Histogram("gen_ai_client_operation_duration_seconds", "How long turns (invoke_agent) and calls of capabilities (execute_tool) took, by model (OpenTelemetry gen_ai.client.operation.duration).",
			operation, "gen_ai_operation_name", "gen_ai_request_model", "error_type"),
		usage: r.Histogram("gen_ai_client_token_usage", "Tokens of a turn, by kind and model (OpenTelemetry gen_ai.client.token.usage).",
			tokenSteps, "gen_ai_token_type", "gen_ai_request_model"),
	}
	for _, status := range []string{"worked", "failed", "refused"} {
		m.calls.f.of(labels{status})
	}
	read.add(r)
	process(r, read.Started)
	return m
}

func (read Readings) add(r *Registry) {
	r.Gauge("ken_build_info", "The program that runs.", "version", "go").Set(1, read.Version, runtime.Version())
	if calls := read.Calls; calls != nil {
		r.GaugeOf("ken_calls_running", "Calls of capabilities that run in this process.", func() float64 {
			n, _ := calls()
			return float64(n)
		})
		r.GaugeOf("ken_calls_waiting", "Calls that wait for a place in this process: see limits.concurrent, limits.perExtension, limits.perPrincipal and limits.perTenant.", func() float64 {
			_, n := calls()
			return float64(n)
		})
	}
	if read.Pending != nil {
		r.GaugeOf("ken_approvals_pending", "Questions that wait for a person.", func() float64 {
			n, err := read.Pending()
			if err != nil {
				return math.NaN() // not known is not none
			}
			return float64(n)
		})
	}
	if c := read.Catalog; c != nil {
		r.GaugeOf("ken_catalog_capabilities", "Capabilities that are known, as ken catalog list lists them.", func() float64 { return float64(c().Capabilities) })
		r.GaugeOf("ken_catalog_available", "Capabilities that can be used.", func() float64 { return float64(c().Available) })
		r.GaugeOf("ken_catalog_quarantined", "Capabilities that are kept back.", func() float64 { return float64(c().Quarantined) })
		r.GaugeOf("ken_catalog_problems", "Problems of the catalog.", func() float64 { return float64(c().Problems) })
		r.GaugeOf("ken_catalog_version", "The catalog's version; it grows with every change.", func() float64 { return float64(c().Version) })
	}
	if c := read.Cluster; c != nil {
		me := c()
		r.Gauge("ken_replica_info", "The replica that answers: join it with other metrics by instance.", "replica", "host").Set(1, me.Replica, me.Host)
		r.GaugeOf("ken_cluster_replicas", "Replicas that run, as this one sees it.", func() float64 { return float64(c().Live) })
		r.GaugeOf("ken_cluster_lag_seconds", "How long ago this replica last knew what others changed.", func() float64 { return c().Lag.Seconds() })
		r.GaugeOf("ken_cluster_current", "1: this replica knows what others changed. 0: it denies calls.", func() float64 {
			if now := c().Current; now != nil && now() {
				return 1
			}
			return 0
		})
		r.CounterOf("ken_cluster_sends_total", "Queries that sent events of turns to other replicas.", func() float64 { return float64(c().Sent) })
		r.CounterOf("ken_cluster_messages_total", "Messages that came from other replicas.", func() float64 { return float64(c().Received) })
	}
	if a := read.Audit; a != nil {
		r.CounterOf("ken_audit_records_total", "Records written to the audit log since the start.", func() float64 { return float64(a().Written) })
		r.GaugeOf("ken_audit_poisoned", "1: the audit log cannot be written, so no call runs.", func() float64 {
			if a().Poisoned {
				return 1
			}
			return 0
		})
	}
}

// Request counts one that was answered. route is the operation's name, which
// is the program's own; of a stream took is how long it was open.
func (m *Meters) Request(route string, status int, took time.Duration, stream bool) {
	class := "none"
	if status >= 100 && status < 600 {
		class = strconv.Itoa(status/100) + "xx"
	}
	m.requests.Add(1, route, class)
	if !stream {
		m.answered.Observe(took.Seconds(), route)
	}
}

// Stream counts an event stream that begins; end counts its end and is called
// once.
func (m *Meters) Stream() (end func()) {
	m.streams.Add(1)
	return func() { m.streams.Add(-1) }
}

// Turn counts a turn that begins; end counts its end and is called once.
func (m *Meters) Turn() (end func()) {
	m.running.Add(1)
	return func() { m.running.Add(-1) }
}

// MCP counts a request of MCP that was answered. It is a mcpserver.Answered.
func (m *Meters) MCP(method, errorType string, took time.Duration) {
	switch method {
	case "initialize", "notifications/initialized", "ping", "server/discover", "logging/setLevel", "completion/complete",
		"tools/list", "tools/call", "prompts/list", "prompts/get",
		"resources/list", "resources/templates/list", "resources/read", "resources/subscribe", "resources/unsubscribe",
		"tasks/get", "tasks/update", "tasks/cancel":
	default:
		method = Other // a client may send any
	}
	m.answers.Observe(took.Seconds(), method, errorType)
}

// Outcome counts what was found, called, refused and said. It is for
// door.Recorder.OnEvent.
func (m *Meters) Outcome(e outcome.Event) {
	took := time.Duration(e.TookUS) * time.Microsecond
	switch e.Kind {
	case outcome.Selected:
		m.found.Observe(took.Seconds())
	case outcome.Used:
		m.calls.Add(1, "worked")
		m.called.Observe(took.Seconds())
		m.operations.Observe(took.Seconds(), "execute_tool", "", "")
	case outcome.Failed:
		m.calls.Add(1, "failed")
		m.called.Observe(took.Seconds())
		m.operations.Observe(took.Seconds(), "execute_tool", "", "tool_error")
	case outcome.Refused:
		m.calls.Add(1, "refused")
		m.refused.Add(1, ruleClass(e.Rule))
	case outcome.Ended:
		m.turns.Add(1, e.End)
		m.turnTook.Observe(took.Seconds())
		m.operations.Observe(took.Seconds(), "invoke_agent", e.Model, turnError(e.End))
		m.ended(e)
	}
}

func (m *Meters) ended(e outcome.Event) {
	u := e.Usage
	m.steps.Add(float64(e.Requests))
	m.tokens.Add(float64(u.Input-u.CachedRead-u.CachedWrite), "plain")
	m.tokens.Add(float64(u.CachedRead), "cached_read")
	m.tokens.Add(float64(u.CachedWrite), "cached_write")
	m.tokens.Add(float64(u.Output), "output")
	if e.Requests > 0 {
		m.usage.Observe(float64(u.Input), "input", e.Model)
		m.usage.Observe(float64(u.Output), "output", e.Model)
	}
	m.cost.Add(e.Cost)
	if e.AllToolTokens > 0 {
		m.shown.Add(float64(e.Shown*e.Requests), "shown")
		m.shown.Add(float64(e.AllToolTokens*e.Requests), "all")
	}
}

// turnError is the kind of error that a turn ended with, empty if none.
func turnError(end string) string {
	switch end {
	case "failed", "limit", "aborted":
		return end
	}
	return ""
}

// ruleClass is the first word of a rule: rules name capabilities and intents
// further on.
func ruleClass(rule string) string {
	class, _, _ := strings.Cut(rule, ".")
	if class == "" {
		return "none"
	}
	return class
}

// process counts what holds for every Go program, under the usual names.
func process(r *Registry, started time.Time) {
	r.GaugeOf("go_goroutines", "Goroutines that exist.", func() float64 { return float64(runtime.NumGoroutine()) })
	r.GaugeOf("go_memstats_heap_alloc_bytes", "Bytes of the heap in use.", func() float64 {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return float64(m.HeapAlloc)
	})
	r.CounterOf("go_memstats_alloc_bytes_total", "Bytes that were allocated, freed ones included.", func() float64 {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return float64(m.TotalAlloc)
	})
	r.GaugeOf("process_start_time_seconds", "When the program started, since 1970.", func() float64 { return float64(started.UnixMilli()) / 1000 })
	r.CounterOf("process_cpu_seconds_total", "Processor time that was used.", func() float64 { return cpuTime().Seconds() })
}
