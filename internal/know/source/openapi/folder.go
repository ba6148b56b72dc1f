package openapi

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"path"
	"strings"

	"ken/capability"
	"ken/internal/know/source/format"
	"ken/internal/know/source/graphql"
	"ken/internal/know/source/safefs"
	"ken/internal/yamldoc"
)

// Marker is the file that makes a folder one API. It names the document in the
// folder and the digest of the document that a person accepted:
//
//	document  the name of the file: openapi.json, openapi.yaml, or graphql.json and
//	          graphql.graphql for a GraphQL schema
//	sha256    its digest; with any other content no operation can be called
//	server    the address of operations for which the document names none
//	from      where the document came from, for people
//	name      of a GraphQL API: its schema has none
//	auth      how the credentials of a GraphQL API are sent, see [Auth]
const Marker = "API.yaml"

// FolderFormat returns the format of folders with an API.yaml, as ken add
// writes them.
func FolderFormat() format.Format {
	return format.Format{Name: "api", Markers: []string{Marker}, Accepts: isFolder, Limit: safefs.TextLimit, Keep: true, Read: readFolder}
}

// isFolder tells the file from a description that is called api.yaml, which is
// the same name on some file systems.
func isFolder(r *safefs.Root, dir string) bool {
	data, _, err := r.Read(path.Join(dir, Marker), safefs.TextLimit)
	return err == nil && !openapiKey().Match(data)
}

func readFolder(u *format.Unit) {
	data, at, err := u.File(Marker, safefs.TextLimit)
	if err != nil {
		u.FaultErr("unreadable", at, 1, err)
		return
	}
	doc, err := yamldoc.Parse(data, yamldoc.Limits{})
	if err != nil {
		u.FaultErr("bad-manifest", at, 1, err)
		return
	}
	r := yamldoc.NewReader(doc)
	name, pinned, server := r.String("document"), r.String("sha256"), r.String("server")
	title, auth := r.String("name"), r.String("auth")
	r.Field("from")
	for _, f := range r.Rest() {
		u.Warn("unknown-key", at, f.Line, fmt.Sprintf("nothing reads %s here", f.Key), "remove it, or correct its name")
	}
	u.WarnIssues("bad-value", at, 1, r)
	if server != "" && !isServer(server) {
		u.Warn("bad-value", at, r.Line("server"), "server is no http address, and is not used", "write it as https://api.example.com/v1")
		server = ""
	}
	if name == "" {
		u.Fault("missing-key", at, 1, "document is missing", "add the API with ken add openapi:FILE")
		return
	}
	text, p, err := u.File(name, safefs.TableLimit)
	if err != nil {
		// The path may not lie in the folder, so the problem is where it is named.
		u.Problems = append(u.Problems, safefs.Problem(err, capability.Grave, u.Origin(at, r.Line("document"))))
		return
	}
	var in *format.Unit
	scheme := "openapi:"
	if strings.HasPrefix(name, GraphQLDocument+".") {
		scheme = "graphql:"
		in = &format.Unit{Context: u.Context, Root: u.Root, Path: p, Format: graphql.Name, Source: u.Source, Trust: u.Trust, Data: text}
		opt, err := graphOptions(title, server, auth)
		if err != nil {
			u.Fault("bad-value", at, r.Line("auth"), err.Error(), "write it as auth: bearer")
			return
		}
		graphql.Read(in, opt)
	} else {
		server = strings.TrimRight(server, "/")
		in = u.Parse(Name, p, text)
	}
	if sum := Digest(text); sum != pinned {
		why := fmt.Sprintf("its document %s changed since it was added", name)
		if pinned == "" {
			why = fmt.Sprintf("%s has no sha256, so nobody accepted its document", Marker)
		}
		fix := "ken add " + scheme + u.Root.Display(p) + " --name " + path.Base(u.Root.Display(u.Path)) + " shows it and accepts it"
		u.Fault("changed-document", p, 0, fmt.Sprintf("%s (sha256:%s), so its operations cannot be called", why, sum), fix)
		for i, c := range in.Capabilities {
			c.Unavailable, c.Findings = why+"; "+fix, nil
			u.Add(c, in.Details[i], p, 0)
		}
		return
	}
	for i, c := range in.Capabilities {
		if c.Unavailable == noAddress && server != "" {
			c.Unavailable, c.Run.URL, c.Findings = "", server+pathOf(c), nil
			u.Add(c, in.Details[i], p, 0) // its hash is another
			continue
		}
		u.Capabilities, u.Details = append(u.Capabilities, c), append(u.Details, in.Details[i])
	}
	for _, problem := range in.Problems {
		if problem.Code != "no-server" || server == "" {
			u.Problems = append(u.Problems, problem)
		}
	}
}

// GraphQLDocument is the name of the document of a GraphQL API, without its ending.
const GraphQLDocument = "graphql"

// graphOptions returns what API.yaml says of a GraphQL API.
func graphOptions(title, server, auth string) (graphql.Options, error) {
	opt := graphql.Options{Prefix: slugOf(title, '_'), Category: slugOf(title, '-'), Address: server}
	ways, err := Auth(title, auth)
	if err != nil || len(ways) == 0 {
		return opt, err
	}
	for _, w := range ways {
		opt.Secrets = append(opt.Secrets, w.Secret)
	}
	raw, err := json.Marshal(ways)
	opt.Auth = string(raw)
	return opt, err
}

// Auth reads how an API is sent its credentials: "bearer", "basic", or "header:NAME"
// for an API key. The secrets are named after the API. An empty text means none.
func Auth(title, text string) ([]Credential, error) {
	prefix := secretPrefix(title) + "_"
	header, isHeader := strings.CutPrefix(text, "header:")
	switch {
	case text == "":
		return nil, nil
	case text == "bearer":
		return []Credential{{Secret: prefix + "TOKEN", Scheme: "bearer"}}, nil
	case text == "basic":
		return []Credential{{Secret: prefix + "USERNAME", Scheme: "basic"}, {Secret: prefix + "PASSWORD", Scheme: "basic"}}, nil
	case isHeader && header != "" && len(header) <= maxAPIName:
		return []Credential{{Secret: prefix + "API_KEY", Scheme: "apiKey", In: "header", Name: header}}, nil
	}
	return nil, fmt.Errorf("unknown way %.60q to send credentials; use bearer, basic or header:NAME", text)
}

// isServer reports whether a text is the http address of an API: without a query,
// and without a person's name or password.
func isServer(s string) bool {
	u, err := url.Parse(s)
	return err == nil && u.Host != "" && (u.Scheme == "https" || u.Scheme == "http") && u.User == nil && u.RawQuery == "" && u.Fragment == "" && len(s) <= maxAPIAddress
}

// Digest returns the digest of a document as API.yaml holds it.
func Digest(document []byte) string {
	sum := sha256.Sum256(document)
	return hex.EncodeToString(sum[:])
}

// pathOf returns the path of an operation, as the document writes it.
func pathOf(c *capability.Capability) string {
	p := strings.TrimPrefix(c.Origin.Pointer, "/paths/")
	p, _, _ = strings.Cut(p, "/")
	return strings.NewReplacer("~1", "/", "~0", "~").Replace(p)
}

// RelativeServer returns the part of an operation's address that stands before its
// path, and whether the document names no host for it. Such an address is
// relative to where the document came from.
func RelativeServer(c *capability.Capability) (base string, relative bool) {
	if c.Unavailable != noAddress || c.Run == nil {
		return "", false
	}
	base, ok := strings.CutSuffix(c.Run.URL, pathOf(c))
	return base, ok && (base == "" || strings.HasPrefix(base, "/") && !strings.Contains(base, "..") && !strings.HasPrefix(base, "//"))
}
