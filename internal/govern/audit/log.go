package audit

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"hash"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"ken/capability"
)

// ErrPoisoned is in the error of every Append that could not be made durable.
// Where the disk had no room, the next Append tries again by itself. After any
// other error of a write or a sync what reached the disk is not known, and
// nothing more is acknowledged until the log is opened again.
var ErrPoisoned = errors.New("the audit log cannot be written")

// ErrClosed is in the error of an Append to a closed log.
var ErrClosed = errors.New("the audit log is closed")

// Config says where a log lives. Dir, CheckpointDir and Key are required.
type Config struct {
	Dir           string // chains; made if missing
	CheckpointDir string // signed heads, apart from Dir; made if missing
	Key           Key

	Redactor *Redactor // nil: structural rules only
	ViewDir  string    // for ken.log, capabilities.log, security.log; "" = no views
	Logger   string    // records' logger where they name none; "" = "ken.runner"
	Program  string    // in the first record: name and version

	SegmentBytes    int64         // a segment past this is followed by another; 0 = 64 MiB
	CheckpointEvery int           // records between heads kept in the history; 0 = 4096
	SyncInterval    time.Duration // longest time before the newest head is durable too; 0 = 1 s
	ViewBytes       int64         // a view past this is set aside; 0 = 16 MiB

	now           func() time.Time // nil = time.Now
	createSegment func(path string) (segmentFile, error)
	wrapHeads     func(slotFile) slotFile
}

// A Log writes the chain of this process. Its methods may be called from any
// number of goroutines. It must be closed; a process that dies instead leaves
// a chain that [Verify] calls died, with nothing acknowledged lost.
type Log struct {
	cfg    Config
	chain  string
	opened time.Time
	warned []string
	views  *views

	exited chan struct{}

	mu            sync.Mutex
	queue         queue
	closing       bool
	failure       error     // why nothing is acknowledged
	poisoned      bool      // and nothing will be
	gap           *gap      // to be told by the next record; nil: none
	chainPosition           // after all lines, written or waiting
	newest        newest    // of these lines
	hash          hash.Hash // SHA-256, used again for every line
	sum           []byte

	committing sync.Mutex // held by the one who commits: the writing goroutine, or a caller
	writer
}

// A queue is what waits to be written, and how its writer is woken. Log.mu guards
// it, except for the channels.
type queue struct {
	wake chan struct{} // there is a batch, or the log closes
	full chan struct{} // as many wait as the writer expects

	pending *batch
	want    int      // the writer waits for so many records; 0: it does not wait
	spare   [][]byte // buffers for the next batches: one waits while another is written
}

// newest is what is known of the newest line and the newest head.
type newest struct {
	signed []byte // head, as signed
	last   string // timestamp
	lastMS int64  // the same, in milliseconds
}

type item struct {
	body   []byte // the record between timestamp and seq
	pooled *[]byte
	view   viewLine
}

// bodies are buffers of items that were copied into a batch.
var bodies = sync.Pool{New: func() any { return new(make([]byte, 0, 1024)) }}

// An ID names a record: its chain, a colon, its number.
type ID string

func makeID(chain string, seq int64) ID { return ID(chain + ":" + strconv.FormatInt(seq, 10)) }

func (id ID) split() (chain string, seq int64, err error) {
	chain, digits, _ := strings.Cut(string(id), ":")
	seq, err = strconv.ParseInt(digits, 10, 64)
	if err != nil || seq < 0 || !chainForm().MatchString(chain) {
		return "", 0, fmt.Errorf("record id %q: want CHAIN:NUMBER as printed by audit query", string(id))
	}
	return chain, seq, nil
}

// Open begins a chain: it makes the files and writes the first record, which
// names the process and the newest heads of other chains. It never touches
// another chain and never waits for one.
func Open(cfg Config) (*Log, error) {
	if cfg.Dir == "" || cfg.CheckpointDir == "" {
		return nil, errors.New("open audit log: Dir and CheckpointDir are required")
	}
	if filepath.Clean(cfg.Dir) == filepath.Clean(cfg.CheckpointDir) {
		return nil, fmt.Errorf("open audit log: the checkpoints must not be in the same folder as the chains, %s", cfg.Dir)
	}
	if cfg.Key.signer == nil {
		return nil, errors.New("open audit log: missing key; create one with LoadKey")
	}
	if cfg.now == nil {
		cfg.now = time.Now
	}
	if cfg.createSegment == nil {
		cfg.createSegment = createSegment
	}
	cfg.Logger = orDefault(cfg.Logger, "ken.runner")
	cfg.SegmentBytes = orDefault(cfg.SegmentBytes, 64<<20)
	cfg.CheckpointEvery = orDefault(cfg.CheckpointEvery, 4096)
	cfg.SyncInterval = orDefault(cfg.SyncInterval, time.Second)
	cfg.ViewBytes = orDefault(cfg.ViewBytes, 16<<20)
	l := &Log{
		cfg:    cfg,
		opened: cfg.now(),
		queue:  queue{wake: make(chan struct{}, 1), full: make(chan struct{}, 1)},
		exited: make(chan struct{}),
		hash:   sha256.New(),
	}
	l.chain = newChain(l.opened)
	if err := l.begin(); err != nil {
		if _, told := errors.AsType[*capability.Error](err); told { // with its file and what to do
			return nil, err
		}
		return nil, &capability.Error{
			Kind: capability.Unavailable, Op: "open audit log", Target: cfg.Dir, Err: err,
			Fix: "make " + cfg.Dir + " and " + cfg.CheckpointDir + " writable, with space left",
		}
	}
	return l, nil
}

func orDefault[T comparable](v, def T) T {
	var zero T
	if v == zero {
		return def
	}
	return v
}

// begin makes the files of the chain and its first record, then starts the
// writer.
func (l *Log) begin() error {
	for _, dir := range []string{l.cfg.Dir, l.cfg.CheckpointDir} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	seen, err := l.look()
	if err != nil {
		return err
	}
	if err := l.create(); err != nil {
		return err
	}
	l.views = newViews(l.cfg.ViewDir, l.cfg.ViewBytes)
	l.due = time.NewTimer(l.cfg.SyncInterval)
	l.due.Stop()
	l.sign = time.NewTimer(signWithin)
	l.sign.Stop()
	go l.run()

	host, _ := os.Hostname()
	boot, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	_, err = l.append(context.Background(), []Record{{
		Event: Opened,
		Chain: &ChainStart{
			Name: l.chain, Program: l.cfg.Program, PID: os.Getpid(), Host: host,
			Boot: strings.TrimSpace(string(boot)), Seen: seen,
		},
	}}, true)
	if err != nil {
		_ = l.Close() // it gives the same reason
	}
	return err
}

// Records is how many records this process has written, or is about to.
func (l *Log) Records() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.tree.size
}

// Chain is the name of this process's chain.
func (l *Log) Chain() string { return l.chain }

// Warnings are what Open noticed about other chains: heads that do not verify,
// files that are shorter than was signed. They stop nothing; [Verify] looks
// closer.
func (l *Log) Warnings() []string { return l.warned }

// Head is the newest signed head, a note in text. Keep it elsewhere (a server,
// a printer) and hand it to [Verify], and even someone who rewinds both
// directories is found.
func (l *Log) Head() []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.newest.signed
}

// Err is why the last append could not be made durable; nil where it was.
func (l *Log) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.failure
}

// Views says how the views are doing. Trouble with them fails no call.
func (l *Log) Views() ViewHealth { return l.views.health() }

// Digest is [Key.Digest] with the log's key.
func (l *Log) Digest(data []byte) string { return l.cfg.Key.Digest(data) }

// Append makes records durable, next to each other and in order, and gives the
// id of the first; the ids of the others follow it. It returns nil only when
// all of them survive a kill of the process and a loss of power, and a signed
// head covers them. When ctx ends first it returns at once, and the records
// may or may not be in the trail: do not act on them.
func (l *Log) Append(ctx context.Context, records ...Record) (ID, error) {
	if err := callers(records); err != nil {
		return "", err
	}
	return l.append(ctx, records, true)
}

// Announce makes records durable as [Log.Append] does, for what is about to happen.
// The next Append signs them with its own: one signature covers the beginning and the
// end of a call. If none comes, they are signed after signWithin.
func (l *Log) Announce(ctx context.Context, records ...Record) (ID, error) {
	if err := callers(records); err != nil {
		return "", err
	}
	return l.append(ctx, records, false)
}

// callers says which of records is not for callers to write.
func callers(records []Record) error {
	for i := range records {
		switch r := &records[i]; {
		case r.Event == "":
			return &capability.Error{Kind: capability.Invalid, Op: "record", Target: "in the audit log", Err: errors.New("the record has no event")}
		case r.Event == Opened || r.Event == Retired || r.Event == Resumed || r.Chain != nil:
			return &capability.Error{Kind: capability.Invalid, Op: "record", Target: string(r.Event), Err: errors.New("records about chains are written only by the log itself")}
		}
	}
	return nil
}

func (l *Log) append(ctx context.Context, records []Record, sign bool) (ID, error) {
	if len(records) == 0 {
		return "", nil
	}
	var room [2]item
	items := room[:0]
	for i := range records {
		it, err := l.prepare(records[i])
		if err != nil {
			return "", err
		}
		items = append(items, it)
	}
	b, seq, err := l.enqueue(items, sign)
	for _, it := range items {
		bodies.Put(it.pooled) // its bytes are in the batch
	}
	if err != nil {
		return "", err
	}
	l.lead(ctx)
	select {
	case <-b.done:
	case <-ctx.Done():
		select {
		case <-b.done: // both are true: then it is recorded
		default:
			return "", fmt.Errorf("record in the audit log: %w; the record may or may not have been written", context.Cause(ctx))
		}
	}
	if b.err != nil {
		return "", b.err
	}
	return makeID(l.chain, seq), nil
}

// recordHash is [tlog.RecordHash] in a hash that is used again; l.mu is held.
func (l *Log) recordHash(line []byte) (sum tlog.Hash) {
	l.hash.Reset()
	l.hash.Write([]byte{0}) // a leaf, not a node
	l.hash.Write(line)
	l.sum = l.hash.Sum(l.sum[:0])
	copy(sum[:], l.sum)
	return sum
}

// prepare redacts and encodes a record, on the caller's time.
func (l *Log) prepare(r Record) (item, error) {
	r.Level = orDefault(r.Level, r.Event.Level())
	r.Logger = orDefault(r.Logger, l.cfg.Logger)
	if n := len(r.Metadata.Notes); n > maxNotes {
		return item{}, fmt.Errorf("record %s: %d notes, the limit is %d", r.Event, n, maxNotes)
	}
	if err := r.clean(l.cfg.Redactor); err != nil {
		return item{}, fmt.Errorf("record %s: %w", r.Event, err)
	}
	buf := bodies.Get().(*[]byte)
	e := encoder{b: append((*buf)[:0], timestampHole...)}
	e.body(&r)
	*buf = e.b
	it := item{body: e.b[len(timestampHole):], pooled: buf}
	if len(it.body) > maxLine-4096 {
		return item{}, fmt.Errorf("record %s: %d bytes, the limit is %d", r.Event, len(it.body), maxLine-4096)
	}
	if l.views.on() {
		it.view = makeViewLine(&r)
	}
	return it, nil
}

// timestampHole stands for the timestamp while the rest is encoded, so that
// the first field too begins with its comma.
const timestampHole = `"`

// clip shortens s to at most limit bytes and says by how much.
func clip(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	return s[:limit] + fmt.Sprintf("[cut: %d more bytes]", len(s)-limit)
}

// Close waits for what is pending, signs the closing head and makes it
// durable. It gives the reason where that cannot be done. Closing twice does
// nothing more.
func (l *Log) Close() error {
	l.mu.Lock()
	first := !l.closing
	l.closing = true
	l.mu.Unlock()
	if first {
		select {
		case l.queue.wake <- struct{}{}:
		default:
		}
	}
	<-l.exited
	return l.Err()
}

// look reads the newest heads of other chains: to remember them in this one,
// and to notice at once what is shorter than was signed.
func (l *Log) look() ([]Witness, error) {
	names, err := listHeads(l.cfg.CheckpointDir)
	if err != nil {
		return nil, err
	}
	known, err := verifiers(l.cfg.Key.public)
	if err != nil {
		return nil, err
	}
	const enough = 16
	var seen []Witness
	for i := len(names) - 1; i >= 0 && len(seen) < enough; i-- {
		hs, err := readSomeHeads(l.cfg.CheckpointDir, names[i], known, 1)
		if err != nil {
			l.warned = append(l.warned, fmt.Sprintf("audit checkpoint of %s: %v", names[i], err))
			if len(l.warned) >= enough {
				break
			}
			continue
		}
		if hs.newest == nil {
			continue
		}
		h := *hs.newest
		seen = append(seen, Witness{Chain: h.chain, Size: h.size, Root: h.root.String()})
		path := filepath.Join(l.cfg.Dir, segmentName(h.chain, h.segment))
		if info, err := os.Stat(path); err == nil && info.Size() < h.offset {
			l.warned = append(l.warned, fmt.Sprintf("audit chain %s: %s has %d bytes, %d were signed", h.chain, path, info.Size(), h.offset))
		}
	}
	return seen, nil
}

// appendLine puts a body between what only the writer knows.
func appendLine(b []byte, at string, body []byte, mono int64, clock string, seq int64, prev tlog.Hash) []byte {
	b = append(b, `{"timestamp":"`...)
	b = append(append(b, at...), '"')
	b = append(b, body...)
	if clock != "" {
		b = append(append(append(b, `,"clock":"`...), clock...), '"')
	}
	b = strconv.AppendInt(append(b, `,"mono_us":`...), mono, 10)
	b = strconv.AppendInt(append(b, `,"seq":`...), seq, 10)
	b = base64.StdEncoding.AppendEncode(append(b, `,"prev":"`...), prev[:])
	return append(b, `"}`...)
}
