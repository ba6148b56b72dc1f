package browser

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"mime"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"ken/capability"
	"ken/internal/run/executor"
	"ken/internal/untrusted"
)

// downloads is the folder of a work directory that files are saved in.
const downloads = "downloads"

// A download is a file that a call waits for.
type download struct {
	most            int64
	guid, name, url string
	state           string // inProgress, completed or canceled
	received        int64
	tooLong         bool
}

// download saves the file at an address, or behind a link.
func (i *instance) download(ctx context.Context, p *plan) (capability.Result, error) {
	into, err := i.room.folder("in")
	if err != nil {
		return capability.Result{}, err
	}
	d := &download{most: downloadLimit}
	i.mu.Lock()
	i.saving = d
	i.mu.Unlock()
	defer func() {
		i.mu.Lock()
		i.saving = nil
		i.mu.Unlock()
	}()
	if err := i.conn.Call(ctx, "", "Browser.setDownloadBehavior", params{"behavior": "allowAndName", "downloadPath": into, "eventsEnabled": true}, nil); err != nil {
		return capability.Result{}, err
	}
	// What a server would have shown as a page is saved as well.
	asFile := append(barredPatterns(), params{"urlPattern": "*", "resourceType": "Document", "requestStage": "Response"})
	if err := i.call(ctx, "Fetch.enable", params{"patterns": asFile}, nil); err != nil {
		return capability.Result{}, err
	}
	r, err := i.fetch(ctx, p, d)
	if ctx.Err() == nil {
		back := i.conn.Call(ctx, "", "Browser.setDownloadBehavior", params{"behavior": "deny", "eventsEnabled": true}, nil)
		err = errors.Join(err, back, i.call(ctx, "Fetch.enable", params{"patterns": barredPatterns()}, nil))
	}
	return r, err
}

func (i *instance) fetch(ctx context.Context, p *plan, d *download) (capability.Result, error) {
	failed := ""
	if p.args.Element != "" {
		if _, err := i.press(ctx, p.args.Element); err != nil {
			return capability.Result{}, err
		}
	} else {
		var out struct {
			Error string `json:"errorText"`
		}
		within, cancel := context.WithTimeout(ctx, openLimit(ctx))
		err := i.call(within, "Page.navigate", params{"url": p.url.String(), "frameId": i.target}, &out)
		cancel()
		if err != nil && ctx.Err() != nil {
			return capability.Result{}, err
		}
		if why := i.refusal(p.url.String()); why != "" {
			return capability.Result{}, unable("%s", why)
		}
		if out.Error != "" && out.Error != "net::ERR_ABORTED" {
			failed = out.Error
		}
	}
	begun := waitDefault
	if failed != "" {
		begun = 0
	}
	if ok, err := i.until(ctx, begun, func() bool { return d.guid != "" }); err != nil {
		return capability.Result{}, err
	} else if !ok {
		if failed != "" {
			return capability.Result{}, unable("nothing was downloaded: %s", untrusted.Line(failed, 100))
		}
		return capability.Result{}, unable("nothing was downloaded%s", i.statusText())
	}
	if _, err := i.until(ctx, time.Hour, func() bool { return d.state == "completed" || d.state == "canceled" || d.tooLong }); err != nil {
		return capability.Result{}, err
	}
	i.mu.Lock()
	got := *d
	i.mu.Unlock()
	from := i.room.name + "/in/" + path.Base(got.guid)
	if got.tooLong || got.state != "completed" {
		i.work.Remove(from)
		if got.tooLong {
			return capability.Result{}, unable("the file has more than %d bytes, and was not saved", got.most)
		}
		why := ""
		if refused := i.refusal(got.url); refused != "" {
			why = ": " + refused
		}
		return capability.Result{}, unable("the download broke off after %d bytes%s", got.received, why)
	}
	name, err := i.keep(from, got.name)
	if err != nil {
		return capability.Result{}, err
	}
	return i.saved(name)
}

func (i *instance) statusText() string {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.status >= 400 {
		return fmt.Sprintf(": HTTP status %d", i.status)
	}
	return ""
}

// keep moves a file into the folder of downloads, under a name that is free.
func (i *instance) keep(from, wanted string) (string, error) {
	info, err := i.work.Lstat(from)
	if err != nil {
		return "", fmt.Errorf("save the file: %w", plainError(err))
	}
	if !info.Mode().IsRegular() {
		return "", errors.New("save the file: it is no plain file")
	}
	name, err := i.free(wanted)
	if err != nil {
		return "", err
	}
	if err := i.work.Rename(from, name); err != nil {
		return "", fmt.Errorf("save the file: %w", plainError(err))
	}
	return name, nil
}

// free returns a name in the folder of downloads that no file has.
func (i *instance) free(wanted string) (string, error) {
	dir, err := executor.OpenDir(i.work, downloads, 0o700)
	if err != nil {
		return "", fmt.Errorf("open the folder %s: %w", downloads, plainError(err))
	}
	defer dir.Close()
	base := fileName(wanted)
	for n := 1; n < 10_000; n++ {
		name := base
		if n > 1 {
			ext := path.Ext(base)
			name = strings.TrimSuffix(base, ext) + "-" + strconv.Itoa(n) + ext
		}
		if _, err := dir.Lstat(name); errors.Is(err, fs.ErrNotExist) {
			return downloads + "/" + name, nil
		}
	}
	return "", fmt.Errorf("the folder %s has too many files of one name", downloads)
}

// fileName makes a plain name of what a server calls a file.
func fileName(wanted string) string {
	wanted = strings.ReplaceAll(wanted, `\`, "/")
	wanted = path.Base("/" + strings.ToValidUTF8(wanted, "_"))
	name := strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("._-", r) {
			return r
		}
		return '_'
	}, wanted)
	name = strings.TrimLeft(name, ".-_")
	for len(name) > 120 {
		_, size := utf8.DecodeLastRuneInString(name)
		name = name[:len(name)-size]
	}
	if name == "" {
		return "file"
	}
	return name
}

func plainError(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	if e, ok := errors.AsType[*os.LinkError](err); ok {
		return e.Err
	}
	return err
}

// saved tells of a file that was saved, with its bytes where they are not many.
func (i *instance) saved(name string) (capability.Result, error) {
	f, err := i.work.Open(name)
	if err != nil {
		return capability.Result{}, plainError(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return capability.Result{}, plainError(err)
	}
	r := capability.Result{Meta: map[string]string{"truncated": "false", "file": name}}
	r.Parts = append(r.Parts, capability.Part{Text: fmt.Sprintf("Saved %s (%d bytes) in the work directory %s.", name, info.Size(), workPath(i.work))})
	if info.Size() > mostInline {
		r.Parts = append(r.Parts, capability.Part{Text: fmt.Sprintf("It has more than %d bytes and is not shown.", mostInline)})
		return r, nil
	}
	data, err := io.ReadAll(io.LimitReader(f, mostInline+1))
	if err != nil {
		return capability.Result{}, plainError(err)
	}
	if utf8.Valid(data) {
		r.Parts = append(r.Parts, capability.Part{Text: string(data), MIME: executor.MIMEStdout})
		return r, nil
	}
	kind := mime.TypeByExtension(path.Ext(name))
	if kind == "" {
		kind = http.DetectContentType(data)
	}
	r.Parts = append(r.Parts, capability.Part{Data: data, MIME: kind})
	return r, nil
}

func workPath(work *os.Root) string {
	at, err := filepath.Abs(work.Name())
	if err != nil {
		return work.Name()
	}
	return at
}

// screenshot takes a picture of what is in view, of an element or of the whole
// page.
func (i *instance) screenshot(ctx context.Context, p *plan) (capability.Result, error) {
	var a about
	if err := i.eval(ctx, "about", &a); err != nil {
		return capability.Result{}, err
	}
	r := i.page(a)
	take := params{"format": "png", "optimizeForSpeed": true}
	type box struct {
		X      float64 `json:"x"`
		Y      float64 `json:"y"`
		Width  float64 `json:"width"`
		Height float64 `json:"height"`
		Error  string  `json:"error"`
	}
	var clip *box
	switch {
	case p.args.Element != "":
		clip = &box{}
		if err := i.eval(ctx, "box", clip, p.args.Element); err != nil {
			return capability.Result{}, err
		}
		if clip.Error != "" {
			return capability.Result{}, unable("%s", clip.Error)
		}
	case p.args.Full:
		var size struct {
			Size box `json:"cssContentSize"`
		}
		if err := i.call(ctx, "Page.getLayoutMetrics", nil, &size); err != nil {
			return capability.Result{}, err
		}
		clip = &size.Size
	}
	if clip != nil {
		if clip.Height > mostHeight || clip.Width > mostHeight {
			r.Parts = append(r.Parts, capability.Part{Text: fmt.Sprintf("The picture shows the first %d of %.0f pixels.", mostHeight, max(clip.Height, clip.Width))})
			r.Meta["truncated"] = "true"
			clip.Height, clip.Width = min(clip.Height, mostHeight), min(clip.Width, mostHeight)
		}
		take["captureBeyondViewport"] = true
		take["clip"] = params{"x": clip.X, "y": clip.Y, "width": clip.Width, "height": clip.Height, "scale": 1}
	}
	kind := "image/png"
	var picture struct {
		Data []byte `json:"data"`
	}
	if err := i.call(ctx, "Page.captureScreenshot", take, &picture); err != nil {
		return capability.Result{}, err
	}
	if len(picture.Data) > mostPicture {
		kind, take["format"], take["quality"] = "image/jpeg", "jpeg", 70
		if err := i.call(ctx, "Page.captureScreenshot", take, &picture); err != nil {
			return capability.Result{}, err
		}
	}
	r.Parts = append(r.Parts, capability.Part{Data: picture.Data, MIME: kind})
	return r, nil
}

// pdf saves the page as a PDF.
func (i *instance) pdf(ctx context.Context, _ *plan) (capability.Result, error) {
	var a about
	if err := i.eval(ctx, "about", &a); err != nil {
		return capability.Result{}, err
	}
	var printed struct {
		Data []byte `json:"data"`
	}
	if err := i.call(ctx, "Page.printToPDF", params{"printBackground": true}, &printed); err != nil {
		return capability.Result{}, err
	}
	name, err := i.free(a.Title + ".pdf")
	if err != nil {
		return capability.Result{}, err
	}
	f, err := i.work.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return capability.Result{}, fmt.Errorf("save the file: %w", plainError(err))
	}
	_, err = f.Write(printed.Data)
	if err = errors.Join(err, f.Close()); err != nil {
		return capability.Result{}, fmt.Errorf("save the file: %w", plainError(err))
	}
	r, err := i.saved(name)
	if err == nil {
		head := i.page(a)
		r.Parts = append(head.Parts, r.Parts...)
		r.Meta["url"] = head.Meta["url"]
	}
	return r, err
}

// upload puts a file of the workspace into a file field of the page.
func (i *instance) upload(ctx context.Context, p *plan) (capability.Result, error) {
	before := i.shown()
	s, err := i.ask(ctx, "isFile", p.args.Element)
	if err != nil {
		return capability.Result{}, err
	}
	at, err := i.bring(p)
	if err != nil {
		return capability.Result{}, err
	}
	object, err := i.object(ctx, p.args.Element)
	if err != nil {
		return capability.Result{}, err
	}
	if err := i.call(ctx, "DOM.setFileInputFiles", params{"files": []string{at}, "objectId": object}, nil); err != nil {
		return capability.Result{}, err
	}
	return i.done(ctx, p, before, "Gave %s to %s", p.args.File, s.Called)
}

// bring copies a file of the workspace to where the browser can read it, and
// returns its path. Nothing else of the workspace is shown to the browser.
func (i *instance) bring(p *plan) (string, error) {
	if p.workspace == "" {
		return "", unable("there is no workspace to upload from")
	}
	root, err := os.OpenRoot(p.workspace)
	if err != nil {
		return "", unable("the workspace cannot be opened: %v", plainError(err))
	}
	defer root.Close()
	dir, err := executor.OpenDir(root, path.Dir(p.args.File), 0)
	if err != nil {
		return "", unable("%s cannot be read: %v", p.args.File, plainError(err))
	}
	defer dir.Close()
	base := path.Base(p.args.File)
	info, err := dir.Lstat(base)
	switch {
	case err != nil:
		return "", unable("%s cannot be read: %v", p.args.File, plainError(err))
	case !info.Mode().IsRegular():
		return "", unable("%s is no plain file", p.args.File)
	case info.Size() > mostUpload:
		return "", unable("%s has %d bytes, and at most %d are uploaded", p.args.File, info.Size(), mostUpload)
	}
	in, err := dir.Open(base)
	if err != nil {
		return "", unable("%s cannot be read: %v", p.args.File, plainError(err))
	}
	defer in.Close()
	if opened, err := in.Stat(); err != nil || !os.SameFile(info, opened) {
		return "", unable("%s was replaced meanwhile", p.args.File)
	}
	i.mu.Lock()
	i.uploads++
	folder := "up" + strconv.Itoa(i.uploads)
	i.mu.Unlock()
	into, err := i.room.folder(folder)
	if err != nil {
		return "", err
	}
	out, err := i.work.OpenFile(i.room.name+"/"+folder+"/"+base, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return "", fmt.Errorf("copy the file: %w", plainError(err))
	}
	_, err = io.Copy(out, io.LimitReader(in, mostUpload))
	if err = errors.Join(err, out.Close()); err != nil {
		return "", fmt.Errorf("copy the file: %w", plainError(err))
	}
	return filepath.Join(into, base), nil
}
