package httpapi

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"

	"ken/internal/serve/auth"
	"ken/internal/serve/httpapi/wire"
)

// pagePolicy is what the page's documents may do: run the scripts of this server and
// nothing else. Whatever a tool, a card or a model wrote, it cannot become a
// script, a style or a request to another place.
const pagePolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; " +
	"font-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types svelte-trusted-html"

// Views are the first parts of the paths that the page itself leads to; it reads
// the rest in the browser.
func Views() []string {
	return []string{"chat", "catalog", "playground", "approvals", "jobs", "trail", "insights", "settings", "demo"}
}

// A page serves the built files of the page, which do not change while the
// program runs. Most are in the binary compressed; each of the others is compressed
// once, when it is first asked for.
type page struct {
	files map[string]*file
	docs  fs.FS // the documentation; nil: this binary has none
}

type file struct {
	kind    string
	etag    string
	plain   func() []byte
	small   func() []byte // compressed; nil where that gains nothing
	lasting bool          // its name changes with its contents
}

// newPage reads all files below the folder dist. Those of docs are read when they
// are asked for.
func newPage(dist, docs fs.FS) (*page, error) {
	p := &page{files: map[string]*file{}, docs: docs}
	err := fs.WalkDir(dist, "dist", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := fs.ReadFile(dist, name)
		if err != nil {
			return err
		}
		name = strings.TrimPrefix(name, "dist/")
		if plain, ok := strings.CutSuffix(name, ".gz"); ok {
			p.files[plain] = newCompressed(plain, b)
		} else {
			p.files[name] = newFile(name, b)
		}
		return nil
	})
	if err == nil && p.files["index.html"] == nil {
		err = fmt.Errorf("read the page: there is no index.html; run npm run build in web")
	}
	return p, err
}

func newFile(name string, b []byte) *file {
	f := describeFile(name, b)
	f.plain = func() []byte { return b }
	f.small = sync.OnceValue(func() []byte { return compressed(b) })
	return f
}

// newCompressed makes a file of its compressed bytes, as nearly every browser
// takes them.
func newCompressed(name string, small []byte) *file {
	f := describeFile(name, small)
	f.plain = sync.OnceValue(func() []byte { return decompressed(small) })
	f.small = func() []byte { return small }
	return f
}

// describeFile returns the headers of a file; its bytes only have to change with
// its contents.
func describeFile(name string, b []byte) *file {
	sum := sha256.Sum256(b)
	f := &file{
		kind: mime.TypeByExtension(path.Ext(name)), etag: `"` + hex.EncodeToString(sum[:12]) + `"`, lasting: strings.HasPrefix(name, "assets/"),
	}
	if f.kind == "" {
		f.kind = "application/octet-stream"
	}
	return f
}

// decompressed returns what was compressed when Ken was built.
func decompressed(small []byte) []byte {
	z, err := gzip.NewReader(bytes.NewReader(small))
	if err != nil {
		return nil // TestPageIsKeptByBrowsers reads every file
	}
	b, err := io.ReadAll(z)
	if err != nil {
		return nil
	}
	return b
}

func compressed(b []byte) []byte {
	var small bytes.Buffer
	z := gzip.NewWriter(&small)
	_, _ = z.Write(b) // memory takes everything
	if z.Close() != nil || small.Len() >= len(b)*9/10 {
		return nil
	}
	return small.Bytes()
}

// find returns the file of a path: its own, or the page for the paths that the
// page leads to.
func (p *page) find(path string) *file {
	name := strings.TrimPrefix(path, "/")
	if f := p.files[name]; f != nil {
		return f
	}
	first, rest, _ := strings.Cut(name, "/")
	if first == docsFolder {
		return p.document(rest)
	}
	switch name {
	case "":
		return p.files["index.html"]
	case "favicon.ico": // browsers ask for it wherever there is no page of ours
		return p.files["ken.svg"]
	}
	if slices.Contains(Views(), first) {
		return p.files["index.html"]
	}
	return nil
}

const docsFolder = "docs"

// document returns a file of the documentation, or nil.
func (p *page) document(name string) *file {
	if p.docs == nil {
		return nil
	}
	if name == "" || strings.HasSuffix(name, "/") {
		name += "index.html"
	}
	b, err := fs.ReadFile(p.docs, name)
	if err != nil {
		return nil
	}
	return newFile(name, b)
}

// ServeAs answers with a file.
func (p *page) ServeAs(w http.ResponseWriter, r *http.Request, _ auth.Identity) {
	if r.URL.Path == "/"+docsFolder {
		http.Redirect(w, r, docsFolder+"/", http.StatusPermanentRedirect) // its links are relative to the folder
		return
	}
	if p.docs == nil && strings.HasPrefix(r.URL.Path, "/"+docsFolder+"/") {
		(&wire.Problem{
			Status: http.StatusNotFound, Code: "no-documentation",
			Detail: "this binary was built without the documentation: make build adds it; the source has it in the folder docs",
		}).Write(w)
		return
	}
	f, status := p.find(r.URL.Path), http.StatusOK
	if f == nil && strings.Contains(r.Header.Get("Accept"), "text/html") {
		f, status = p.files["index.html"], http.StatusNotFound // the page says that there is nothing
	}
	if f == nil {
		wire.NoSuchPath(w, r)
		return
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		(&wire.Problem{Status: http.StatusMethodNotAllowed, Code: "method-not-allowed", Detail: "the page is read with GET"}).Write(w)
		return
	}
	h := w.Header()
	h.Set("Content-Type", f.kind)
	h.Set("Content-Security-Policy", pagePolicy)
	h.Set("ETag", f.etag)
	h.Add("Vary", "Accept-Encoding")
	if f.lasting {
		h.Set("Cache-Control", "private, max-age=31536000, immutable")
	} else {
		h.Set("Cache-Control", "private, no-cache")
	}
	if r.Header.Get("If-None-Match") == f.etag && status == http.StatusOK {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	var body []byte
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		body = f.small()
	}
	if body != nil {
		h.Set("Content-Encoding", "gzip")
	} else {
		body = f.plain()
	}
	h.Set("Content-Length", fmt.Sprint(len(body)))
	w.WriteHeader(status)
	if r.Method == http.MethodGet {
		_, _ = w.Write(body) // the client is gone
	}
}
