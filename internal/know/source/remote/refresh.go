package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path"
	"slices"
	"strings"
	"time"
	"unicode"

	"ken/capability"
	"ken/internal/duration"
	"ken/internal/know/source"
	"ken/internal/know/source/format"
	"ken/internal/know/source/safefs"
)

// A remoteState is a copy and what was read from it.
type remoteState struct {
	*remoteCopy
	tree  *source.Tree
	local string
	batch capability.Batch
}

// look asks the address, and settles which content is used: what it holds now,
// or what we have. The error is for having nothing.
func (r *Remote) look(ctx context.Context, have *remoteCopy) (remoteState, []capability.Problem, error) {
	var known *remoteHeader
	if have != nil {
		known = &have.remoteHeader
	}
	got, err := r.fetch(ctx, known)
	if ctx.Err() != nil {
		return remoteState{}, nil, ctx.Err()
	}
	if err != nil {
		return r.fallBack(ctx, have, r.refusal(err), r.stale(have, err))
	}
	if got.unchanged {
		r.confirm(have)
		next, err := r.use(ctx, have)
		return next, nil, err
	}
	hash := hashBytes(got.data)
	if r.cfg.SHA256 != "" && hash != r.cfg.SHA256 {
		message := fmt.Sprintf("the content has the hash sha256:%s, but sha256:%s is pinned", hash, r.cfg.SHA256)
		fix := "if the new content is right, set sha256: to its hash for this source"
		pin := &capability.Error{Kind: capability.Conflict, Op: "load", Target: r.shown, Rule: "sha256", Err: errors.New(message), Fix: fix}
		return r.fallBack(ctx, have, pin, r.problem(capability.Grave, "remote-pin", message+"; the last good copy is used", fix))
	}
	if have != nil && have.SHA256 == hash {
		r.confirm(have)
		next, err := r.use(ctx, have)
		return next, nil, err
	}
	return r.take(ctx, have, got, hash)
}

// confirm notes that what we have is what the address holds now.
func (r *Remote) confirm(have *remoteCopy) {
	have.checked = time.Now().UTC()
	if have.file != nil {
		// The file's time says it to the next process; without it the copy
		// only looks older than it is.
		_ = os.Chtimes(copyPath(r.cfg.CacheDir, r.url.String()), have.checked, have.checked)
	}
}

// refusal is the error when there is nothing to fall back to.
func (r *Remote) refusal(cause error) *capability.Error {
	e := &capability.Error{
		Kind: capability.Unavailable, Op: "load", Target: r.shown, Err: cause,
		Fix: "check the address and the network, then reload",
	}
	if _, private := errors.AsType[*privateAddressError](cause); private {
		e.Kind, e.Fix = capability.Denied, "use a public address, or copy the file here and name it as a source"
	}
	return e
}

func (r *Remote) stale(have *remoteCopy, cause error) capability.Problem {
	if have == nil {
		return capability.Problem{}
	}
	age := time.Since(have.checked).Round(time.Second)
	return r.problem(capability.Warning, "remote-stale",
		fmt.Sprintf("the address could not be read (%s); the copy of %s is used, %s old", cause, have.checked.Format(time.RFC3339), duration.Text(age)),
		"check the address and the network; nothing was lost")
}

// fallBack uses what we have and says why, or fails when we have nothing.
func (r *Remote) fallBack(ctx context.Context, have *remoteCopy, none *capability.Error, why ...capability.Problem) (remoteState, []capability.Problem, error) {
	if have == nil {
		return remoteState{}, nil, none
	}
	next, err := r.use(ctx, have)
	return next, why, err
}

// use returns the state of a copy that we have. The one in use is not read again.
func (r *Remote) use(ctx context.Context, have *remoteCopy) (remoteState, error) {
	r.mu.RLock()
	now := remoteState{remoteCopy: r.have, tree: r.tree, local: r.local, batch: r.batch}
	r.mu.RUnlock()
	if now.remoteCopy == have && now.tree != nil {
		now.batch.Problems = slices.DeleteFunc(slices.Clone(now.batch.Problems), func(p capability.Problem) bool {
			return strings.HasPrefix(p.Code, "remote-") // reported again after each look
		})
		return now, nil
	}
	return r.parse(ctx, have)
}

// take uses new content, unless it makes no sense while what we have does.
func (r *Remote) take(ctx context.Context, have *remoteCopy, got fetched, hash string) (remoteState, []capability.Problem, error) {
	now := time.Now().UTC()
	h := remoteHeader{
		Version: remoteCopyVersion, SHA256: hash, First: hash, FirstSeen: now, Fetched: now,
		ETag: got.etag, Modified: got.modified, Name: remoteName(r.cfg.Format, r.url, got.contentType, got.data),
	}
	if have != nil {
		h.First, h.FirstSeen = have.First, have.FirstSeen
	}
	next, err := r.parse(ctx, memoryCopy(h, got.data))
	if err != nil {
		return remoteState{}, nil, err
	}
	if have != nil && isEmpty(next.batch) {
		why := append(slices.Clone(next.batch.Problems), r.problem(capability.Grave, "remote-unusable",
			"nothing in the new content could be read; the last good copy is used", "fix the content at the address"))
		return r.fallBack(ctx, have, nil, why...)
	}
	if r.cfg.CacheDir == "" {
		return next, nil, nil
	}
	name := copyPath(r.cfg.CacheDir, r.url.String())
	err = writeCopy(name, h, got.data)
	var kept *remoteCopy
	if err == nil {
		kept, err = readCopy(name)
	}
	if err != nil {
		return next, []capability.Problem{r.problem(capability.Warning, "remote-copy",
			fmt.Sprintf("no copy could be kept in %s: %s", r.cfg.CacheDir, safefs.PlainCause(err)), "make the folder writable for this user")}, nil
	}
	// The bytes on disk are the bytes that were parsed: readCopy checks the hash.
	next.body.ReaderAt, next.file = kept.body.ReaderAt, kept.file
	return next, nil, nil
}

func isEmpty(b capability.Batch) bool {
	return len(b.Capabilities) == 0 && len(b.Presets) == 0 && len(b.Documents) == 0
}

// parse reads a copy as if it were a file in a folder of its own.
func (r *Remote) parse(ctx context.Context, c *remoteCopy) (remoteState, error) {
	s := remoteState{remoteCopy: c, tree: source.NewTree(source.TreeConfig{
		Name: r.cfg.Name, Files: safefs.OneFile{Name: c.Name, Content: c.body}, Trust: capability.TrustRemote, Cache: r.cfg.Cache,
	})}
	b, err := s.tree.Load(ctx)
	if err != nil {
		return remoteState{}, err
	}
	s.local = (&safefs.Root{Name: r.cfg.Name}).Display(c.Name)
	for _, one := range b.Capabilities {
		r.readdress(&one.Origin)
	}
	for i := range b.Presets {
		r.readdress(&b.Presets[i].Origin)
	}
	for i := range b.Documents {
		r.readdress(&b.Documents[i].Origin)
	}
	for i := range b.Problems {
		r.readdress(&b.Problems[i].Origin)
	}
	if isEmpty(b) && len(b.Problems) == 0 {
		b.Problems = append(b.Problems, r.problem(capability.Grave, "unknown-format",
			fmt.Sprintf("the content, read as %s, is in no format that Ken knows", c.Name), "set format: for this source; see docs/sources.md for what can be read"))
	}
	s.batch = b
	return s, nil
}

func (r *Remote) readdress(o *capability.Origin) {
	o.Location, o.Path = capability.Remote, r.shown
}

// remoteNames returns, for each format that a single file can have, the name
// under which a folder would hold it; .* is .json or .yaml by its look.
func remoteNames() map[string]string {
	return map[string]string{
		"jsonl": "catalog.jsonl", "openapi": "openapi.*", "mcplist": "tools.json",
		"channel": "channels.*", "extensionlist": "extensions.*", "preset": "presets.*",
		"manifest": "CAPABILITY.yaml", "extension": format.ExtensionManifest, "skill": "SKILL.md",
		"card": "cards/card.md", "command": "commands/command.md",
	}
}

func remoteFormats() []string {
	var names []string
	for name := range remoteNames() {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func knownRemoteFormat(name string) bool {
	return name == "" || slices.Contains(remoteFormats(), name)
}

// remoteName returns the name of the file that content is read as.
func remoteName(format string, u *url.URL, contentType string, data []byte) string {
	if name, ok := remoteNames()[format]; ok {
		if stem, any := strings.CutSuffix(name, ".*"); any {
			return stem + jsonOrYAML(data)
		}
		if base := safeBase(u); path.Dir(name) != "." && safefs.HasExt(base, ".md") {
			return path.Join(path.Dir(name), base) // these are named by their file
		}
		return name
	}
	base := safeBase(u)
	if safefs.HasExt(base, ".md", ".json", ".jsonl", ".yaml", ".yml") {
		return base
	}
	return strings.TrimSuffix(base, path.Ext(base)) + extensionFor(contentType, data)
}

// safeBase returns the last element of an address' path as a file's name.
func safeBase(u *url.URL) string {
	base := strings.Map(func(r rune) rune {
		if r == '\\' || r == unicode.ReplacementChar || !unicode.IsPrint(r) {
			return '_'
		}
		return r
	}, path.Base(u.Path))
	if base == "." || base == "/" || base == ".." || len(base) > 200 {
		return "content"
	}
	return base
}

// extensionFor tells the kind of a file by what the server calls it, and by
// its look where that says nothing.
func extensionFor(contentType string, data []byte) string {
	kind, _, _ := strings.Cut(strings.ToLower(contentType), ";")
	switch kind = strings.TrimSpace(kind); {
	case kind == "text/markdown":
		return ".md"
	case strings.Contains(kind, "ndjson"), strings.Contains(kind, "jsonl"), strings.Contains(kind, "json-seq"):
		return ".jsonl"
	case strings.Contains(kind, "yaml"):
		return ".yaml"
	}
	text := bytes.TrimLeft(bytes.TrimPrefix(data, []byte("\ufeff")), " \t\r\n")
	switch {
	case bytes.HasPrefix(text, []byte("---")):
		return ".md"
	case bytes.HasPrefix(text, []byte("{")) && linesAreObjects(text):
		return ".jsonl"
	}
	return jsonOrYAML(data)
}

func jsonOrYAML(data []byte) string {
	text := bytes.TrimLeft(bytes.TrimPrefix(data, []byte("\ufeff")), " \t\r\n")
	if bytes.HasPrefix(text, []byte("{")) || bytes.HasPrefix(text, []byte("[")) {
		return ".json"
	}
	return ".yaml"
}

// linesAreObjects reports whether the first two lines each hold one object.
func linesAreObjects(text []byte) bool {
	first, rest, more := bytes.Cut(text, []byte("\n"))
	if !more || !bytes.HasSuffix(bytes.TrimSpace(first), []byte("}")) {
		return false
	}
	return bytes.HasPrefix(bytes.TrimSpace(rest), []byte("{"))
}
