package remote

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"ken/capability"
	"ken/internal/know/source"
	"ken/internal/know/source/parsecache"
	"ken/internal/know/source/pattern"
	"ken/internal/know/source/safefs"
)

// Config describes a [Remote]. Zero fields mean the defaults.
type Config struct {
	// Name is the source's name; the address without its query when empty.
	Name string

	// URL is an https address, or an http one on this machine. A name and
	// password in it, and its query, are sent to the server and never shown.
	URL string

	// SHA256 pins the content: other bytes are not read. When empty, the
	// first content is trusted and a change of it is reported.
	SHA256 string

	// Format says what the content is ("jsonl", "openapi", "skill", …); when
	// empty its name, its type and its look decide.
	Format string

	// CacheDir keeps the last good copy; when empty it is kept in memory and
	// does not outlive the process.
	CacheDir string

	// Refresh is the time between looks at the address while it is watched:
	// 15 minutes, and never when negative.
	Refresh time.Duration

	// Timeout ends one look at the address: 30 seconds.
	Timeout time.Duration

	// Client, when not nil and with a Transport, is used to connect, and
	// then its owner answers for where it connects to. Otherwise only public
	// addresses are reached, or this machine where URL names it literally.
	Client *http.Client

	// Cache, when not nil, keeps what large files were parsed to.
	Cache *parsecache.Cache
}

// A Remote is an address that holds capabilities in any format that a single
// file can have. What it brings has remote trust. When the address cannot be
// read the last good copy is used, with a warning that says how old it is.
//
// Its methods may be called at the same time, except Load and Watch, which one
// goroutine calls in turn.
type Remote struct {
	cfg    Config
	url    *url.URL
	shown  string
	client *http.Client
	limit  int64 // bytes that are read: maxRemoteBytes, fewer in tests

	mu    sync.RWMutex // guards what follows
	have  *remoteCopy
	tree  *source.Tree
	local string // how the tree names the one file
	batch capability.Batch
}

var sha256Pattern = pattern.Lazy(`^[0-9a-f]{64}$`)

// New makes a Remote, or says what is wrong with its configuration.
// Nothing is fetched before Load.
func New(cfg Config) (*Remote, error) {
	u, err := url.Parse(cfg.URL)
	if err != nil {
		return nil, errors.New("remote source: the address is not a URL; write https:// and a host") // the cause would repeat it
	}
	if err := checkAddress(u); err != nil {
		return nil, fmt.Errorf("remote source %s: %w; use an https address (http is only for this machine)", showURL(u), err)
	}
	shown := showURL(u)
	if cfg.Name == "" {
		cfg.Name = shown
	}
	cfg.SHA256 = strings.TrimPrefix(strings.ToLower(strings.TrimSpace(cfg.SHA256)), "sha256:")
	if cfg.SHA256 != "" && !sha256Pattern().MatchString(cfg.SHA256) {
		return nil, fmt.Errorf("remote source %s: sha256 is not a SHA-256 hash; write 64 hexadecimal digits, as sha256sum prints them", cfg.Name)
	}
	if !knownRemoteFormat(cfg.Format) {
		return nil, fmt.Errorf("remote source %s: no format is called %q; leave it out, or use one of %s", cfg.Name, cfg.Format, strings.Join(remoteFormats(), ", "))
	}
	if cfg.Refresh == 0 {
		cfg.Refresh = 15 * time.Minute
	}
	if cfg.Timeout <= 0 {
		cfg.Timeout = 30 * time.Second
	}
	return &Remote{cfg: cfg, url: u, shown: shown, client: remoteClient(cfg.Client, u, cfg.Timeout), limit: maxRemoteBytes}, nil
}

// Name returns the source's name.
func (r *Remote) Name() string { return r.cfg.Name }

// Trust returns the trust of all that the address holds.
func (r *Remote) Trust() capability.Trust { return capability.TrustRemote }

// Load looks at the address, and falls back to the last good copy.
func (r *Remote) Load(ctx context.Context) (capability.Batch, error) {
	b, _, err := r.update(ctx)
	return b, err
}

// Watch looks at the address again and again. A look that fails yields the
// same capabilities with a problem that says why.
func (r *Remote) Watch(ctx context.Context) iter.Seq2[capability.Batch, error] {
	return func(yield func(capability.Batch, error) bool) {
		if r.cfg.Refresh < 0 {
			<-ctx.Done()
			return
		}
		timer := time.NewTimer(r.cfg.Refresh)
		defer timer.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-timer.C:
			}
			b, changed, err := r.update(ctx)
			if ctx.Err() != nil || (changed || err != nil) && !yield(b, err) {
				return
			}
			timer.Reset(r.cfg.Refresh)
		}
	}
}

// Close closes the copy. Capabilities loaded from it have no details afterwards.
func (r *Remote) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.have.close()
	r.have = nil
	if r.tree == nil {
		return nil
	}
	err := r.tree.Close()
	r.tree = nil
	return err
}

// Detail reads the schema and body of a capability from the copy that it was
// loaded from.
func (r *Remote) Detail(ctx context.Context, c *capability.Capability) (capability.Detail, error) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if r.tree == nil {
		return capability.Detail{}, &capability.Error{
			Kind: capability.NotFound, Op: "read", Target: string(c.ID),
			Err: fmt.Errorf("%s is not loaded", r.shown), Fix: "reload the catalog",
		}
	}
	local := *c
	local.Origin.Path = r.local
	d, err := r.tree.Detail(ctx, &local)
	if e, ok := errors.AsType[*capability.Error](err); ok {
		shown := *e
		shown.Err = fmt.Errorf("%s holds something else by now", c.Origin)
		return capability.Detail{}, &shown
	}
	return d, err
}

// Reference reads a document that is kept out of memory.
func (r *Remote) Reference(d capability.Document) (string, error) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if r.tree == nil {
		return "", &capability.Error{Kind: capability.NotFound, Op: "read", Target: d.Origin.Path, Fix: "reload the catalog"}
	}
	d.Origin.Path = r.local
	return r.tree.Reference(d)
}

// update looks at the address once and puts what it found in place. It reports
// whether the batch differs from the one before.
func (r *Remote) update(ctx context.Context) (b capability.Batch, changed bool, err error) {
	have, inUse, problems := r.lastGood()
	next, more, err := r.look(ctx, have)
	if err != nil {
		if !inUse {
			have.close()
		}
		return capability.Batch{}, false, err
	}
	problems = append(problems, more...)
	if p, differs := r.changedSinceFirst(next.remoteCopy); differs {
		problems = append(problems, p)
	}
	b = next.batch
	b.Problems = append(slices.Clone(b.Problems), problems...)
	changed = r.put(next, &b)
	if have != next.remoteCopy {
		have.close()
	}
	return b, changed, nil
}

// put makes a state the one in use. Capabilities that did not change stay the
// same pointers.
func (r *Remote) put(next remoteState, b *capability.Batch) (changed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	was := make(map[capability.ID]*capability.Capability, len(r.batch.Capabilities))
	for _, c := range r.batch.Capabilities {
		was[c.ID] = c
	}
	changed = len(b.Capabilities) != len(r.batch.Capabilities)
	b.Capabilities = slices.Clone(b.Capabilities)
	for i, c := range b.Capabilities {
		if old, ok := was[c.ID]; ok && reflect.DeepEqual(old, c) {
			b.Capabilities[i] = old
		} else {
			changed = true
		}
	}
	changed = changed || !reflect.DeepEqual(b.Presets, r.batch.Presets) ||
		!reflect.DeepEqual(b.Documents, r.batch.Documents) || !reflect.DeepEqual(b.Problems, r.batch.Problems)
	r.have, r.tree, r.local, r.batch = next.remoteCopy, next.tree, next.local, *b
	r.batch.Problems = slices.Clone(b.Problems)
	return changed
}

// lastGood returns the copy in use, or at first the one on disk, if its content
// is what the pin asks for.
func (r *Remote) lastGood() (have *remoteCopy, inUse bool, problems []capability.Problem) {
	r.mu.RLock()
	have = r.have
	r.mu.RUnlock()
	if have != nil || r.cfg.CacheDir == "" {
		return have, true, nil
	}
	name := copyPath(r.cfg.CacheDir, r.url.String())
	c, err := readCopy(name)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, false, nil
		}
		return nil, false, []capability.Problem{r.problem(capability.Warning, "remote-copy",
			fmt.Sprintf("the last good copy %s is not used: %s", name, safefs.PlainCause(err)), "the next good look writes a new copy")}
	}
	if r.cfg.SHA256 != "" && c.SHA256 != r.cfg.SHA256 {
		c.close() // the pin was changed since; what it names must come first
		return nil, false, nil
	}
	return c, false, nil
}

func (r *Remote) origin() capability.Origin {
	return capability.Origin{Source: r.cfg.Name, Format: r.cfg.Format, Location: capability.Remote, Path: r.shown}
}

func (r *Remote) problem(s capability.Severity, code, message, fix string) capability.Problem {
	return capability.Problem{Severity: s, Code: code, Origin: r.origin(), Message: message, Fix: fix}
}

// changedSinceFirst reports unverified content: it is not the content first
// seen, and no pin names it.
func (r *Remote) changedSinceFirst(c *remoteCopy) (capability.Problem, bool) {
	if r.cfg.SHA256 != "" || c.First == c.SHA256 {
		return capability.Problem{}, false
	}
	return r.problem(capability.Warning, "remote-changed",
		fmt.Sprintf("the content is not the one first seen on %s: its hash was sha256:%s and is sha256:%s", c.FirstSeen.Format(time.DateOnly), c.First, c.SHA256),
		fmt.Sprintf("look at it, then set sha256: %s for this source to accept it", c.SHA256)), true
}
