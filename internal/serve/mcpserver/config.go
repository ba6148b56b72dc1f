package mcpserver

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"ken/capability"
	"ken/internal/door"
	"ken/internal/serve/skillshelf"
)

// Config says what a Server offers and whom it asks. Only Door is needed; what
// is nil or empty beyond it is not offered.
type Config struct {
	Door    *door.Door
	Version string // of Ken
	Log     *slog.Logger

	// Surface is "direct", "bridge", or "auto", which empty means too: what
	// fits the client, by its name.
	Surface string

	// Surfaces are the same for single clients, by their name in ken connect or
	// the beginning of the name that they give themselves.
	Surfaces map[string]string

	// Pinned are ids of capabilities that are on the menu of a bridge as they
	// are.
	Pinned []string

	// Intents returns the names that select_active_intent takes. Without any, and
	// where it is nil, the tool is not there. It is asked at each call and each
	// listing.
	Intents func() []string

	// Exposed returns the name under which a tool is listed natively. Nil, and
	// an empty answer, mean the capability's name. What comes out is made fit for
	// clients and unique in any case.
	Exposed func(*door.Entry) string

	// Page returns what a server says of its pages (MCP Apps) and one of its tools.
	// Nil: there are none.
	Page func(*door.Entry) Page

	Backends Backends

	// Skills reads local skills with their files. Nil: there are none.
	Skills Skills

	// Ask returns what a person must answer before a call that ended with err
	// can go on; nil where err waits for no answer.
	Ask func(ctx context.Context, err error) (*Question, error)

	// Settle takes the reply to a question with a ticket. Nil: what a client
	// says is no person's word, and what waits is answered elsewhere.
	Settle func(ctx context.Context, who capability.Principal, r Reply) error

	// Hasty is how soon an answer is the client's own and no person's, one second
	// when zero. Below zero every answer is a person's.
	Hasty time.Duration

	// Wait waits until a ticket is settled, or its time is over. Nil: a call
	// that waits for a person is no task.
	Wait func(ctx context.Context, ticket string) error

	// TaskAfter is how long a client that knows tasks waits for a call before it
	// gets a task, 15 seconds when zero.
	TaskAfter time.Duration

	// Jobs queues calls that a client wants to run later. Nil: none can.
	Jobs Jobs

	// Signer, and what it returns, is nil where this server is alone.
	Signer func() Signer

	// ApproveHint says where else a ticket can be settled, as in
	// "ken approve grant T1".
	ApproveHint func(ticket string) string

	// Whole reads the whole of a kept result of a principal's session.
	Whole func(ctx context.Context, who capability.Principal, session, handle string) (capability.Result, error)

	// Missing says which servers behind Ken cannot be started for want of
	// something that a person can set, a line for each. A client is told when
	// it comes, since it would see nothing of them.
	Missing func() []string

	// Instructions is how many tokens of the servers' own instructions a client
	// is given when it comes.
	Instructions int

	// EndSession is told of each session that is over.
	EndSession func(session string)

	// Hosts are names under which Handler may be reached besides loopback, as
	// in "ken.example.com". MaxBody is the most bytes of one message, 4 MiB when
	// zero; MaxSessions the most sessions over HTTP at once, 1024 when zero;
	// Idle how long one may be without any request, 30 minutes when zero.
	Hosts       []string
	MaxBody     int64
	MaxSessions int
	Idle        time.Duration
}

func (c *Config) hasty() time.Duration { return cmp.Or(c.Hasty, hasty) }

// A Page is what a server says of its pages and one of its tools.
type Page struct {
	Address string // of the page that shows the tool's results; empty: there is none
	Only    bool   // pages may call the tool, and models may not
	Never   bool   // pages may not call the tool
}

// A Question is what a person must answer before a call can go on.
type Question struct {
	// Name is the key in [capability.Call.Answers], Answer what goes there once
	// the person has agreed.
	Name   string
	Answer json.RawMessage

	// Ticket, where there is one, is settled with [Config.Settle]. A question
	// without a ticket is answered by making the call again with Answer.
	Ticket string

	Text  string // in one sentence
	Lines []Line // what exactly will run, as a person must see it

	// Wide permits answers for the session and for always. Always says what an
	// answer for always covers. Prefix, if not empty, says which commands may
	// be allowed together.
	Wide           bool
	Always, Prefix string
}

// A Line is one thing to know about a call.
type Line struct{ Name, Text string }

// A Reply is what came back through a client to a question with a ticket.
type Reply struct {
	Ticket   string
	Decision Decision
	Client   string        // as the client calls itself
	Took     time.Duration // since the question
}

// A Decision is a person's answer to a question with a ticket, or [Unasked].
type Decision string

// The answers there are. Deny is the only no. Unasked is no answer: the client
// answered before a person could, so the ticket stays open.
const (
	AllowOnce    Decision = "once"
	AllowSession Decision = "session"
	AllowAlways  Decision = "always" // this exact call
	AllowPrefix  Decision = "prefix" // commands with the same prefix, always
	Deny         Decision = "deny"
	Unasked      Decision = "unasked"
)

// Backends are the servers behind Ken, as far as they offer more than tools.
// Its methods are safe for any number of goroutines.
type Backends interface {
	// Offers returns what each server offers a principal, and a version that is
	// another one whenever something in it is. It does not wait for a server
	// that has not started. A server that was added later comes later: the
	// first to have a name keeps it. What it gives is not changed.
	Offers(who capability.Principal) ([]Offer, uint64)

	// Next waits until the offers have a version above after.
	Next(ctx context.Context, after uint64) (uint64, error)

	// Complete passes on a completion/complete: params and result are the
	// protocol's, with the server's own names in them.
	Complete(ctx context.Context, who capability.Principal, session, server string, params json.RawMessage) (json.RawMessage, error)

	// Subscribe asks a server to tell of changes of a resource. Stop ends it
	// and may be called once.
	Subscribe(ctx context.Context, who capability.Principal, session, server, uri string, updated func()) (stop func(), err error)
}

// An Offer is what one server has besides tools, under its own names.
type Offer struct {
	Server    string
	Prompts   []*mcp.Prompt
	Resources []*mcp.Resource
	Templates []*mcp.ResourceTemplate

	// Instructions are for models, in the server's own words. They came from
	// outside.
	Instructions string

	// Read and Prompt are the capabilities by which its resources are read
	// (argument uri) and its prompts got (arguments name and arguments). What
	// the principal may not see of them hides what they read.
	Read, Prompt capability.ID

	// Skills are read with Read, file by file.
	Skills []skillshelf.Skill
}

// Hello is what a client on a stream says before the protocol begins.
type Hello struct {
	// Session names the session in records; empty makes one.
	Session string

	// Surface is what the client asks for, where the settings leave it open:
	// "direct", "bridge" or empty.
	Surface string
}
