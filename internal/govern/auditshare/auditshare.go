// Package auditshare copies the audit logs of all machines into the store that they
// share, and reads them from there. Each process keeps its own signed chain in files of
// its machine, as before. The copy makes the records of a machine readable that is gone,
// and the signed heads beside it say how far each chain must go.
//
//	auditlog/home/HOME                  the public key of a machine's chains, and its name
//	auditlog/head/HOME/CHAIN            the file with a chain's signed heads
//	auditlog/text/HOME/FILE/OFFSET      records, as they are in the file
package auditshare

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"ken/internal/govern/audit"
	"ken/internal/store"
	"ken/internal/wholefile"
)

const (
	prefix = "auditlog/"

	every      = time.Second // copies are made
	pieceBytes = 1 << 20
	batchBytes = 4 << 20
	storeTime  = 20 * time.Second

	headSuffix = ".head"
	textSuffix = ".jsonl"
)

func homeKey(home string) string        { return store.Key("auditlog", "home", home) }
func headKey(home, chain string) string { return store.Key("auditlog", "head", home, chain) }
func textPrefix(home, file string) string {
	return store.Key("auditlog", "text", home, file) + "/"
}
func textKey(home, file string, offset int64) string {
	return textPrefix(home, file) + fmt.Sprintf("%015d", offset)
}

// A Config says which audit log is copied, and where those of others are put. All of it
// is needed.
type Config struct {
	Archive audit.Archive
	Home    string        // names this machine's state folder
	Cache   string        // a folder for copies
	Keep    time.Duration // how long records are in the store; 0: for good
	Log     *slog.Logger
}

// A Shared is the audit logs of all machines. View, Follow and Fetch are safe for concurrent
// use; Run and Copy are for one goroutine.
type Shared struct {
	cfg    Config
	copied map[string]int64 // how far each file was copied
	heads  map[string][]byte
	said   bool

	fetching sync.Mutex
}

// New returns the audit logs of all machines that have the store of the archive.
func New(cfg Config) *Shared {
	return &Shared{cfg: cfg, copied: map[string]int64{}, heads: map[string][]byte{}}
}

// Run copies what is new until ctx ends, and then once more.
func (s *Shared) Run(ctx context.Context) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	var last string
	for {
		err := s.Copy(ctx)
		if said := fmt.Sprint(err); err != nil && ctx.Err() == nil && said != last {
			last = said
			s.cfg.Log.Warn("the audit log is not copied to the store", "error", err)
		}
		select {
		case <-ctx.Done():
			bye, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
			defer cancel()
			_ = s.Copy(bye) // the next process of this machine does it otherwise
			return
		case <-tick.C:
		}
	}
}

type about struct {
	Host string `json:"host"`
	Key  string `json:"key"` // public
}

// Copy puts what is new in the chains of this machine, of all its processes, into the
// store. A head is stored with all records that it signs.
func (s *Shared) Copy(ctx context.Context) error {
	db, err := s.cfg.Archive.Store()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, storeTime)
	defer cancel()
	names, err := heads(s.cfg.Archive.CheckpointDir)
	if err != nil || len(names) == 0 {
		return err
	}
	if !s.said {
		key, err := os.ReadFile(s.cfg.Archive.KeyFile + ".pub")
		if err != nil {
			return err
		}
		host, _ := os.Hostname()                                              // it is for people
		value, _ := json.Marshal(about{host, strings.TrimSpace(string(key))}) // texts
		var b store.Batch
		b.Put(homeKey(s.cfg.Home), value)
		if _, err := db.Apply(ctx, &b); err != nil {
			return err
		}
		s.said = true
	}
	for _, chain := range names {
		if err := s.copyChain(ctx, db, chain); err != nil {
			return err
		}
	}
	return nil
}

func (s *Shared) copyChain(ctx context.Context, db *store.Store, chain string) error {
	// The head comes first: all records that it signs are in the files by now.
	head, err := os.ReadFile(filepath.Join(s.cfg.Archive.CheckpointDir, chain+headSuffix))
	if errors.Is(err, fs.ErrNotExist) || bytes.Equal(head, s.heads[chain]) && err == nil {
		return nil
	}
	if err != nil {
		return err
	}
	if s.heads[chain] == nil { // a process before this one may have copied it
		item, there, err := db.Get(ctx, headKey(s.cfg.Home, chain))
		if err != nil {
			return err
		}
		if there && bytes.Equal(item.Value, head) {
			s.heads[chain] = head
			return nil
		}
	}
	for n := 1; ; n++ {
		more, err := s.copyFile(ctx, db, fmt.Sprintf("%s.%06d%s", chain, n, textSuffix))
		if err != nil {
			return err
		}
		if !more {
			break
		}
	}
	var b store.Batch
	s.put(&b, headKey(s.cfg.Home, chain), head)
	if _, err := db.Apply(ctx, &b); err != nil {
		return err
	}
	s.heads[chain] = head
	return nil
}

func (s *Shared) put(b *store.Batch, key string, value []byte) {
	if s.cfg.Keep > 0 {
		b.PutFor(key, value, s.cfg.Keep)
	} else {
		b.Put(key, value)
	}
}

// copyFile copies the end of a file, and reports whether there is such a file.
func (s *Shared) copyFile(ctx context.Context, db *store.Store, name string) (bool, error) {
	f, err := os.Open(filepath.Join(s.cfg.Archive.Dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer f.Close()
	at, known := s.copied[name]
	if !known {
		if at, err = stored(ctx, db, textPrefix(s.cfg.Home, name)); err != nil {
			return false, err
		}
	}
	if _, err := f.Seek(at, io.SeekStart); err != nil {
		return false, err
	}
	for {
		var b store.Batch
		from := at
		for at-from < batchBytes {
			piece := make([]byte, pieceBytes)
			n, err := io.ReadFull(f, piece)
			if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
				return false, err
			}
			if n == 0 {
				break
			}
			s.put(&b, textKey(s.cfg.Home, name, at), piece[:n])
			at += int64(n)
		}
		if at == from {
			s.copied[name] = at
			return true, nil
		}
		if _, err := db.Apply(ctx, &b); err != nil {
			return false, err
		}
		s.copied[name] = at
	}
}

// stored returns how many bytes of a file the store has.
func stored(ctx context.Context, db *store.Store, prefix string) (size int64, err error) {
	for item, err := range db.Scan(ctx, prefix, store.Range{}) {
		if err != nil {
			return 0, err
		}
		offset, err := strconv.ParseInt(strings.TrimPrefix(item.Key, prefix), 10, 64)
		if err != nil || offset != size {
			return size, nil // what is missing is copied again
		}
		size += int64(len(item.Value))
	}
	return size, nil
}

// heads returns the names of the chains in a folder of signed heads.
func heads(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var out []string
	for _, e := range entries {
		if chain, ok := strings.CutSuffix(e.Name(), headSuffix); ok {
			out = append(out, chain)
		}
	}
	return out, err
}

// A Machine is the audit log of another machine, as the store has it.
type Machine struct {
	Home, Host  string
	Key         string // public
	Dir         string // of its chains
	Checkpoints string
}

// Fetch brings the copies of other machines' audit logs up to date, and returns where
// they are.
func (s *Shared) Fetch(ctx context.Context) ([]Machine, error) {
	s.fetching.Lock()
	defer s.fetching.Unlock()
	return s.fetch(ctx)
}

func (s *Shared) fetch(ctx context.Context) ([]Machine, error) {
	db, err := s.cfg.Archive.Store()
	if err != nil {
		return nil, err
	}
	var out []Machine
	for item, err := range db.Scan(ctx, prefix+"home/", store.Range{}) {
		if err != nil {
			return nil, err
		}
		home := strings.TrimPrefix(item.Key, prefix+"home/")
		var a about
		if home == s.cfg.Home || json.Unmarshal(item.Value, &a) != nil {
			continue
		}
		at := filepath.Join(s.cfg.Cache, home)
		out = append(out, Machine{home, a.Host, a.Key, filepath.Join(at, "audit"), filepath.Join(at, "heads")})
	}
	for _, m := range out {
		if err := fetch(ctx, db, m); err != nil {
			return nil, fmt.Errorf("read the audit log of %s: %w", m.Host, err)
		}
	}
	return out, nil
}

func fetch(ctx context.Context, db *store.Store, m Machine) error {
	for _, dir := range []string{m.Dir, m.Checkpoints} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	wanted := store.Key("auditlog", "head", m.Home) + "/"
	for item, err := range db.Scan(ctx, wanted, store.Range{}) {
		if err != nil {
			return err
		}
		chain := strings.TrimPrefix(item.Key, wanted)
		if strings.ContainsAny(chain, "/%") {
			continue // no name of ours
		}
		file := filepath.Join(m.Checkpoints, chain+headSuffix)
		if have, err := os.ReadFile(file); err == nil && bytes.Equal(have, item.Value) {
			continue
		}
		for n := 1; ; n++ {
			more, err := fetchFile(ctx, db, m, fmt.Sprintf("%s.%06d%s", chain, n, textSuffix))
			if err != nil {
				return err
			}
			if !more {
				break
			}
		}
		if err := wholefile.Write(file, item.Value, 0o600); err != nil {
			return err
		}
	}
	return nil
}

func fetchFile(ctx context.Context, db *store.Store, m Machine, name string) (there bool, err error) {
	f, err := os.OpenFile(filepath.Join(m.Dir, name), os.O_RDWR, 0o600)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	defer func() {
		if f != nil {
			err = errors.Join(err, f.Close())
		}
	}()
	size := int64(0)
	if f != nil {
		if size, err = f.Seek(0, io.SeekEnd); err != nil {
			return true, err
		}
	}
	var rest store.Range
	if size > 0 {
		rest.After = textKey(m.Home, name, size-1)
	}
	for item, err := range db.Scan(ctx, textPrefix(m.Home, name), rest) {
		if err != nil {
			return f != nil, err
		}
		if f == nil {
			if f, err = os.OpenFile(filepath.Join(m.Dir, name), os.O_RDWR|os.O_CREATE, 0o600); err != nil {
				return false, err
			}
		}
		offset, err := strconv.ParseInt(strings.TrimPrefix(item.Key, textPrefix(m.Home, name)), 10, 64)
		if err != nil {
			return true, err
		}
		if _, err := f.WriteAt(item.Value, offset); err != nil { // a gap stays empty, and is found
			return true, err
		}
	}
	return f != nil, nil
}

// Verify checks the chains of this machine against the heads in the store, and the copies
// of all other machines against theirs. The names of their chains end in @HOST.
func (s *Shared) Verify(ctx context.Context, elsewhere ...[]byte) (audit.Report, error) {
	report, err := s.cfg.Archive.Verify(ctx, elsewhere...)
	if err != nil {
		return report, err
	}
	machines, err := s.Fetch(ctx)
	if err != nil {
		return report, err
	}
	for _, m := range machines {
		one, err := audit.Verify(m.Dir, m.Checkpoints, m.Key)
		if err != nil {
			return report, fmt.Errorf("verify the audit log of %s: %w", m.Host, err)
		}
		for _, c := range one.Chains {
			c.Chain += "@" + m.Host
			if c.State == audit.OpenAlive || c.State == audit.OpenDied {
				// Which it is only its own machine can tell.
				c.State = audit.OpenAlive
			}
			report.Chains = append(report.Chains, c)
		}
	}
	return report, nil
}

// View returns a folder with the chains of all machines, to read them together.
func (s *Shared) View(ctx context.Context) (string, error) {
	s.fetching.Lock()
	defer s.fetching.Unlock()
	machines, err := s.fetch(ctx)
	if err != nil {
		return "", err
	}
	view := filepath.Join(s.cfg.Cache, "all")
	if err := os.MkdirAll(view, 0o700); err != nil {
		return "", err
	}
	dirs := []string{s.cfg.Archive.Dir}
	for _, m := range machines {
		dirs = append(dirs, m.Dir)
	}
	var names []string
	for _, dir := range dirs {
		entries, err := os.ReadDir(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
		for _, e := range entries {
			if !strings.HasSuffix(e.Name(), textSuffix) {
				continue
			}
			names = append(names, e.Name())
			if err := os.Symlink(filepath.Join(dir, e.Name()), filepath.Join(view, e.Name())); err != nil && !errors.Is(err, fs.ErrExist) {
				return "", err
			}
		}
	}
	entries, err := os.ReadDir(view)
	for _, e := range entries { // of chains that were retired
		if !slices.Contains(names, e.Name()) {
			err = errors.Join(err, os.Remove(filepath.Join(view, e.Name())))
		}
	}
	return view, err
}
