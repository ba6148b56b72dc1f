// Package objectstore keeps files in a bucket of an S3-compatible service: it puts, reads,
// lists and deletes objects, and signs its requests with AWS Signature Version 4.
package objectstore

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"ken/capability"
)

// The names of the secrets that [Config.Secret] is asked for.
const (
	IDName     = "AWS_ACCESS_KEY_ID"
	SecretName = "AWS_SECRET_ACCESS_KEY"
)

// Config says where the bucket is. Both fields are needed.
type Config struct {
	Address string // see [Parse]
	Secret  func(name string) (string, error)
}

// A Place is what an address says.
type Place struct {
	Bucket   string
	Prefix   string // of all keys: empty, or ends in a slash
	Endpoint *url.URL
	Region   string
}

// Parse reads s3://BUCKET/PREFIX?endpoint=https://HOST&region=REGION. Without a region it
// is us-east-1, and without an endpoint that of AWS in the region.
func Parse(address string) (Place, error) {
	const form = "write s3://BUCKET/PREFIX?endpoint=https://HOST&region=REGION"
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "s3" || u.Host == "" || u.User != nil || u.Fragment != "" {
		return Place{}, errors.New("is not the address of a bucket; " + form + ", and keep the keys in " + IDName + " and " + SecretName)
	}
	p := Place{Bucket: u.Host, Prefix: strings.Trim(u.Path, "/"), Region: "us-east-1"}
	if p.Prefix != "" {
		p.Prefix += "/"
	}
	q, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return Place{}, errors.New("has options that cannot be read; " + form)
	}
	for name := range q {
		if name != "endpoint" && name != "region" {
			return Place{}, fmt.Errorf("has the unknown option %q; %s", name, form)
		}
	}
	if r := q.Get("region"); r != "" {
		p.Region = r
	}
	endpoint := q.Get("endpoint")
	if endpoint == "" {
		endpoint = "https://s3." + p.Region + ".amazonaws.com"
	}
	p.Endpoint, err = url.Parse(endpoint)
	if err != nil || p.Endpoint.Scheme != "https" && p.Endpoint.Scheme != "http" || p.Endpoint.Host == "" || strings.Trim(p.Endpoint.Path, "/") != "" {
		return Place{}, fmt.Errorf("has the endpoint %q; write https://HOST or http://HOST:PORT", endpoint)
	}
	p.Endpoint.Path = ""
	return p, nil
}

// A Bucket is where objects are. Its methods are safe for concurrent use.
type Bucket struct {
	place  Place
	secret func(string) (string, error)
	client *http.Client
	now    func() time.Time
}

// Open returns a bucket. It asks the service nothing.
func Open(cfg Config) (*Bucket, error) {
	p, err := Parse(cfg.Address)
	if err != nil {
		return nil, &capability.Error{Kind: capability.Invalid, Op: "open", Target: "object store", Err: err}
	}
	// A redirect would need another signature, and a service has no need of one.
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return &Bucket{place: p, secret: cfg.Secret, client: client, now: time.Now}, nil
}

// Put writes an object of the given size. The body is read twice: once for its checksum.
func (b *Bucket) Put(ctx context.Context, key string, body io.ReadSeeker, size int64) error {
	sum, err := hashOf(body)
	if err != nil {
		return fmt.Errorf("put object %s: %w", key, err)
	}
	resp, err := b.do(ctx, request{method: http.MethodPut, key: key, body: body, size: size, sum: sum})
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

// Get returns an object, which the caller closes. It is [capability.NotFound] if there is
// none.
func (b *Bucket) Get(ctx context.Context, key string) (io.ReadCloser, error) {
	resp, err := b.do(ctx, request{method: http.MethodGet, key: key})
	if err != nil {
		return nil, err
	}
	return resp.Body, nil
}

// Delete removes an object. It is no error if there is none.
func (b *Bucket) Delete(ctx context.Context, key string) error {
	resp, err := b.do(ctx, request{method: http.MethodDelete, key: key})
	if err != nil {
		if capability.KindOf(err) == capability.NotFound {
			return nil
		}
		return err
	}
	return resp.Body.Close()
}

// An Object is one of a list.
type Object struct {
	Key  string
	Made time.Time
	Size int64
}

// List returns up to 1,000 objects whose keys begin with prefix and come after a key, in
// their order, and the time of the service.
func (b *Bucket) List(ctx context.Context, prefix, after string) ([]Object, time.Time, error) {
	q := url.Values{"list-type": {"2"}, "prefix": {b.place.Prefix + prefix}}
	if after != "" {
		q.Set("start-after", b.place.Prefix+after)
	}
	resp, err := b.do(ctx, request{method: http.MethodGet, query: q})
	if err != nil {
		return nil, time.Time{}, err
	}
	defer resp.Body.Close()
	var doc struct {
		Contents []struct {
			Key          string
			LastModified time.Time
			Size         int64
		}
	}
	if err := xml.NewDecoder(io.LimitReader(resp.Body, 8<<20)).Decode(&doc); err != nil {
		return nil, time.Time{}, b.fail("list objects", fmt.Errorf("the answer cannot be read: %w", err), "see that the endpoint is an S3-compatible service")
	}
	now, err := http.ParseTime(resp.Header.Get("Date"))
	if err != nil {
		now = b.now()
	}
	var out []Object
	for _, c := range doc.Contents {
		if key, ok := strings.CutPrefix(c.Key, b.place.Prefix); ok {
			out = append(out, Object{key, c.LastModified, c.Size})
		}
	}
	return out, now, nil
}

type request struct {
	method, key string
	query       url.Values
	body        io.ReadSeeker
	size        int64
	sum         string
}

const (
	tries = 3
	pause = 200 * time.Millisecond
)

// do makes a request, and again where the service or the network was at fault: every
// request may be repeated.
func (b *Bucket) do(ctx context.Context, r request) (*http.Response, error) {
	for n := 1; ; n++ {
		resp, again, err := b.once(ctx, r)
		if err == nil || !again || n == tries || ctx.Err() != nil {
			return resp, err
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(time.Duration(n) * pause):
		}
	}
}

func (b *Bucket) once(ctx context.Context, r request) (resp *http.Response, again bool, err error) {
	op := map[string]string{http.MethodPut: "put object", http.MethodGet: "get object", http.MethodDelete: "delete object"}[r.method]
	if r.key == "" {
		op = "list objects"
	}
	id, secret, err := b.keys()
	if err != nil {
		return nil, false, b.fail(op, err, "set both with ken secret set "+IDName+" and ken secret set "+SecretName+", or in the environment")
	}
	path := "/" + b.place.Bucket
	if r.key != "" {
		path += "/" + b.place.Prefix + r.key
	}
	u := *b.place.Endpoint
	u.Path, u.RawPath, u.RawQuery = path, escape(path, true), query(r.query)
	var body io.Reader
	if r.body != nil {
		if _, err := r.body.Seek(0, io.SeekStart); err != nil {
			return nil, false, b.fail(op, err, "see that the file can be read")
		}
		body = io.NopCloser(io.LimitReader(r.body, r.size))
	}
	req, err := http.NewRequestWithContext(ctx, r.method, u.String(), body)
	if err != nil {
		return nil, false, b.fail(op, err, "check the address of the bucket")
	}
	if r.body != nil {
		req.ContentLength = r.size
		req.Header.Set("Content-Type", "application/octet-stream")
		if r.size == 0 {
			req.Body = http.NoBody
		}
	}
	sum := r.sum
	if sum == "" {
		sum = emptySum
	}
	sign(req, b.now(), id, secret, b.place.Region, sum)
	resp, err = b.client.Do(req)
	if err != nil {
		return nil, true, b.fail(op, err, "see that "+b.place.Endpoint.Host+" can be reached")
	}
	if resp.StatusCode/100 == 2 {
		return resp, false, nil
	}
	defer resp.Body.Close()
	return nil, resp.StatusCode >= 500 || resp.StatusCode == http.StatusTooManyRequests, b.refused(op, resp)
}

func (b *Bucket) keys() (id, secret string, err error) {
	if id, err = b.secret(IDName); err == nil {
		secret, err = b.secret(SecretName)
	}
	if err == nil && (id == "" || secret == "") {
		err = errors.New("there are no keys for the object store")
	}
	return id, secret, err
}

func (b *Bucket) fail(op string, err error, fix string) error {
	return &capability.Error{Kind: capability.Unavailable, Op: op, Target: "s3://" + b.place.Bucket, Err: err, Fix: fix}
}

// refused says what an answer that is no success means.
func (b *Bucket) refused(op string, resp *http.Response) error {
	var said struct{ Code, Message string }
	_ = xml.NewDecoder(io.LimitReader(resp.Body, 64<<10)).Decode(&said) // many answers have no text
	if said.Code == "" {
		said.Code = "status " + strconv.Itoa(resp.StatusCode)
	}
	err := fmt.Errorf("%s answers %s", b.place.Endpoint.Host, said.Code)
	if said.Message != "" {
		err = fmt.Errorf("%w: %.200q", err, said.Message)
	}
	switch {
	case said.Code == "NoSuchBucket":
		return b.fail(op, err, "make the bucket "+b.place.Bucket+", or name another one")
	case resp.StatusCode == http.StatusNotFound:
		return &capability.Error{Kind: capability.NotFound, Op: op, Target: "s3://" + b.place.Bucket, Err: err}
	case said.Code == "RequestTimeTooSkewed":
		return b.fail(op, err, "set the clock of this machine (NTP)")
	case said.Code == "SignatureDoesNotMatch", said.Code == "InvalidAccessKeyId":
		return b.fail(op, err, "check "+IDName+", "+SecretName+" and the region")
	case resp.StatusCode == http.StatusForbidden, resp.StatusCode == http.StatusUnauthorized:
		return b.fail(op, err, "let the keys of "+IDName+" get, put, delete and list objects of "+b.place.Bucket)
	case resp.StatusCode/100 == 3:
		return b.fail(op, err, "name the endpoint and the region that the bucket is in")
	}
	return b.fail(op, err, "try again; look at the service's status")
}
