package result

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"ken/capability"
	"ken/internal/store"
)

// Results that replicas share are in a store, and the folder of each replica holds
// copies:
//
//	result/SCOPE/HANDLE         the description, as in the file; written last
//	result-text/SCOPE/HANDLE/N  the text, in pieces
//
// A long text may be an object SCOPE/HANDLE of an object store instead.

const (
	pieceBytes = 1 << 20
	batchBytes = 8 << 20
	sharedTime = 30 * time.Second // that the store may take for one result
)

func sharedPrefix(scope Scope) string        { return store.Key("result", scope.folder()) + "/" }
func sharedKey(scope Scope, h string) string { return store.Key("result", scope.folder(), h) }
func piecesPrefix(scope Scope, h string) string {
	return store.Key("result-text", scope.folder(), h) + "/"
}

// A sharedHeader is what the store has of a result.
type sharedHeader struct {
	header
	Object bool `json:"object,omitempty"` // the text is in the object store
}

func objectKey(scope Scope, handle string) string { return scope.folder() + "/" + handle }

// apart reports whether a text of this length goes to the object store.
func (s *Store) apart(bytes int64) bool { return s.cfg.Objects != nil && bytes > inline }

// largestWith is how much text is added to a batch of the caller's.
const largestWith = 256 << 10

// share puts a result of the folder into the store, or into a batch for it.
func (s *Store) share(scope Scope, handle string, with *With) error {
	db, err := s.cfg.Shared()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), sharedTime)
	defer cancel()
	dir, err := s.folder(scope, false)
	if err != nil {
		return err
	}
	defer dir.Close()
	h, inside, err := readEntry(dir, handle)
	if err != nil {
		return err
	}
	text := io.ReadSeeker(bytes.NewReader(inside))
	if h.Apart {
		f, err := dir.Open(handle + ".text")
		if err != nil {
			return err
		}
		defer f.Close()
		text = f
	}
	var b store.Batch
	size, whole := 0, true
	object := s.apart(h.Kept.Bytes)
	if object {
		if err := s.cfg.Objects.Put(ctx, objectKey(scope, handle), text, h.Kept.Bytes); err != nil {
			return err
		}
	}
	for n := 0; !object; n++ {
		piece := make([]byte, pieceBytes)
		got, err := io.ReadFull(text, piece)
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			return err
		}
		if got > 0 {
			b.PutFor(piecesPrefix(scope, handle)+fmt.Sprintf("%05d", n), piece[:got], s.cfg.Keep)
			size += got
		}
		if err != nil {
			break
		}
		if size >= batchBytes {
			if _, err := db.Apply(ctx, &b); err != nil {
				return err
			}
			b, size, whole = store.Batch{}, 0, false
		}
	}
	line, err := json.Marshal(sharedHeader{h, object})
	if err != nil {
		return err
	}
	b.PutFor(sharedKey(scope, handle), line, s.cfg.Keep)
	if with != nil && with.Store == db && size <= largestWith && whole {
		with.Batch.Join(&b)
		return nil
	}
	_, err = db.Apply(ctx, &b)
	return err
}

// fetch copies a result into the folder, unless it is there. What the store no longer
// has is missing, although the folder may have a copy.
func (s *Store) fetch(scope Scope, handle string) error {
	ctx, cancel := context.WithTimeout(context.Background(), sharedTime)
	defer cancel()
	db, err := s.cfg.Shared()
	if err != nil {
		return s.away(err)
	}
	item, there, err := db.Get(ctx, sharedKey(scope, handle))
	var h sharedHeader
	switch {
	case err != nil:
		return s.away(err)
	case !there || json.Unmarshal(item.Value, &h) != nil || h.Version != headerVersion || h.Handle != handle:
		return missing(s.cfg.Keep)
	}
	if o, err := s.openHere(scope, handle); err == nil {
		o.close()
		return nil
	}
	dir, err := s.folder(scope, true)
	if err != nil {
		return err
	}
	defer dir.Close()
	name, _ := s.newHandle() // for a file that no one else writes
	part := name + ".part"
	defer dir.Remove(part) // unless it was renamed
	if h.Object {
		err = s.fetchObject(ctx, dir, part, objectKey(scope, handle), h.Kept.Bytes)
	} else {
		err = s.fetchText(ctx, db, dir, part, piecesPrefix(scope, handle), h.Kept.Bytes)
	}
	if err != nil {
		return err
	}
	h.Apart = true
	line, err := json.Marshal(h.header)
	if err == nil {
		err = dir.Rename(part, handle+".text")
	}
	if err == nil {
		w := &Writer{store: s, scope: scope, dir: dir}
		err = w.describe(handle, append(line, '\n'))
	}
	if err != nil && !errors.Is(err, fs.ErrExist) { // another reader was as fast
		return s.unreadable(err)
	}
	return nil
}

func (s *Store) fetchText(ctx context.Context, db *store.Store, dir *os.Root, file, pieces string, want int64) error {
	f, err := dir.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return s.unreadable(err)
	}
	defer f.Close()
	var got int64
	for piece, err := range db.Scan(ctx, pieces, store.Range{}) {
		if err != nil {
			return s.away(err)
		}
		if _, err := f.Write(piece.Value); err != nil {
			return s.unreadable(err)
		}
		got += int64(len(piece.Value))
	}
	if got != want {
		return missing(s.cfg.Keep) // it expires just now
	}
	return nil
}

func (s *Store) fetchObject(ctx context.Context, dir *os.Root, file, key string, want int64) error {
	if s.cfg.Objects == nil {
		return s.away(errors.New("the text is in an object store, and results.bucket names none"))
	}
	body, err := s.cfg.Objects.Get(ctx, key)
	if capability.KindOf(err) == capability.NotFound {
		return missing(s.cfg.Keep)
	}
	if err != nil {
		return s.away(err)
	}
	defer body.Close()
	f, err := dir.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return s.unreadable(err)
	}
	defer f.Close()
	switch got, err := io.Copy(f, io.LimitReader(body, want+1)); {
	case err != nil:
		return s.away(err)
	case got != want:
		return s.away(fmt.Errorf("the object %s has another length than %d bytes", key, want))
	}
	return nil
}

// objectsEvery is how often a process looks for objects that have expired.
const objectsEvery = 10 * time.Minute

// sweepObjects deletes texts in the object store that have expired, by the clock of the
// service. What cannot be deleted is left for the next time. The caller holds sweeping.
func (s *Store) sweepObjects(ctx context.Context) error {
	if s.cfg.Objects == nil || !s.objects.IsZero() && time.Since(s.objects) < objectsEvery {
		return nil
	}
	s.objects = time.Now()
	for after := ""; ; {
		list, now, err := s.cfg.Objects.List(ctx, "", after)
		if err != nil || len(list) == 0 {
			return err
		}
		for _, o := range list {
			_, handle, _ := strings.Cut(o.Key, "/")
			if _, ours := madeAt(handle); ours && now.Sub(o.Made) >= s.cfg.Keep {
				if err := s.cfg.Objects.Delete(ctx, o.Key); err != nil {
					return err
				}
			}
		}
		after = list[len(list)-1].Key
	}
}

// others returns the results of a scope that replicas share, newest first. Of what is
// also in the folder it returns the same.
func (s *Store) others(scope Scope) ([]Entry, error) {
	if s.cfg.Shared == nil || scope.Principal == "" {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), sharedTime)
	defer cancel()
	db, err := s.cfg.Shared()
	if err != nil {
		return nil, s.away(err)
	}
	var out []Entry
	for item, err := range db.Scan(ctx, sharedPrefix(scope), store.Range{}) {
		if err != nil {
			return nil, s.away(err)
		}
		var h header
		if json.Unmarshal(item.Value, &h) == nil && h.Version == headerVersion && strings.HasSuffix(item.Key, "/"+h.Handle) {
			out = append(out, h.Entry)
		}
	}
	slices.Reverse(out)
	return out, nil
}

func (s *Store) away(err error) error {
	return refuse(capability.Unavailable, "read result", err, "results are in the store that replicas share; see that it can be reached")
}

// unshare removes results of a scope from the store: all, or those behind the newest
// keep.
func (s *Store) unshare(scope Scope, keep int, only string) error {
	if s.cfg.Shared == nil {
		return nil
	}
	list, err := s.others(scope)
	if err != nil || len(list) <= keep {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), sharedTime)
	defer cancel()
	db, err := s.cfg.Shared()
	if err != nil {
		return s.away(err)
	}
	for _, e := range list[keep:] {
		if only != "" && e.Handle != only {
			continue
		}
		var b store.Batch
		b.Delete(sharedKey(scope, e.Handle))
		for n := int64(0); n*pieceBytes < e.Kept.Bytes; n++ {
			b.Delete(piecesPrefix(scope, e.Handle) + fmt.Sprintf("%05d", n))
		}
		if _, err := db.Apply(ctx, &b); err != nil {
			return s.away(err)
		}
		if s.apart(e.Kept.Bytes) { // without a description it cannot be read; what fails here expires
			_ = s.cfg.Objects.Delete(ctx, objectKey(scope, e.Handle))
		}
	}
	return nil
}
