package add

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"ken/capability"
	"ken/internal/know/source/graphql"
	"ken/internal/know/source/openapi"
	"ken/internal/yamldoc"
)

// readGraph reads the schema of a GraphQL API: it asks the server, or reads a file.
// A schema has no name and no address, so those are settled here too.
func (a *API) readGraph(ctx context.Context, q Request) (data []byte, err error) {
	address := ""
	if strings.Contains(q.From, "://") {
		address = q.From
	}
	if address == "" {
		if data, a.From, err = a.places.readDocument(ctx, q.From); err != nil {
			return nil, err
		}
		a.inherit(filepath.Dir(a.From))
	} else {
		a.From = address
	}
	a.Server = firstText(q.Server, a.Server, address)
	a.auth = firstText(q.Auth, a.auth)
	refuse := func(why error, fix string) error {
		return &capability.Error{Kind: capability.Invalid, Op: "add API", Target: withoutQuery(a.From), Err: why, Fix: fix}
	}
	u, err := url.Parse(a.Server)
	switch {
	case a.Server == "":
		return nil, refuse(errors.New("a GraphQL schema names no address"), "add --server https://HOST/graphql with the address of the API")
	case err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http":
		return nil, refuse(errors.New("the address of the API is not http or https with a host"), "write it as https://HOST/graphql")
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return nil, refuse(errors.New("the address of the API has a query or a password in it"), "name it without; --auth says how credentials are sent")
	}
	if a.Name = q.Name; a.Name == "" {
		a.Name = graphName(address, a.From)
	}
	if !apiName().MatchString(a.Name) {
		return nil, refuse(fmt.Errorf("%q cannot name an API", a.Name), "choose a name with --name: small letters, digits and dashes")
	}
	ways, err := openapi.Auth(a.Name, a.auth)
	if err != nil {
		return nil, refuse(err, "")
	}
	if address == "" {
		return data, nil
	}
	return a.introspect(ctx, address, ways, q)
}

// introspect asks a server for its schema.
func (a *API) introspect(ctx context.Context, address string, ways []openapi.Credential, q Request) ([]byte, error) {
	header := http.Header{}
	var pair [2]string
	for i, w := range ways {
		value, ok := "", false
		if q.Secret != nil {
			value, ok = q.Secret(w.Secret)
		}
		if !ok || value == "" {
			return nil, &capability.Error{
				Kind: capability.Unavailable, Op: "add API", Target: a.From, Err: fmt.Errorf("the secret %s is not set, and the server is asked with it", w.Secret), Fix: "run ken secret set " + w.Secret,
			}
		}
		switch w.Scheme {
		case "bearer":
			header.Set("Authorization", "Bearer "+value)
		case "basic":
			pair[i] = value
			r := http.Request{Header: header}
			r.SetBasicAuth(pair[0], pair[1])
		default:
			header.Set(w.Name, value)
		}
	}
	body, err := json.Marshal(map[string]string{"query": graphql.Introspection, "operationName": "IntrospectionQuery"})
	if err != nil {
		return nil, err
	}
	data, shown, err := a.places.Ask(ctx, address, header, body)
	if shown != "" {
		a.From = shown
	}
	own, isOwn := errors.AsType[*capability.Error](err)
	var status interface{ HTTPStatus() int }
	if errors.As(err, &status) && isOwn {
		switch own.Fix = "if the server does not allow introspection, get its schema and add graphql:FILE --server " + address; {
		case status.HTTPStatus() != http.StatusUnauthorized && status.HTTPStatus() != http.StatusForbidden:
		case len(ways) == 0:
			own.Fix = "if it needs credentials, add --auth bearer, --auth basic or --auth header:NAME"
		default:
			own.Fix = "check the secret " + ways[0].Secret
		}
	}
	return data, err
}

// inherit takes over what the API.yaml in a folder says, where the document that is
// read is the copy of an API.
func (a *API) inherit(dir string) {
	data, err := os.ReadFile(filepath.Join(dir, openapi.Marker))
	if err != nil {
		return
	}
	if m, err := yamldoc.Parse(data, yamldoc.Limits{}); err == nil {
		r := yamldoc.NewReader(m)
		a.Server, a.auth = r.String("server"), r.String("auth")
	}
}

func firstText(list ...string) string {
	i := slices.IndexFunc(list, func(s string) bool { return s != "" })
	if i < 0 {
		return ""
	}
	return list[i]
}

func withoutQuery(from string) string {
	plain, _, _ := strings.Cut(from, "?")
	if u, err := url.Parse(plain); err == nil && u.User != nil {
		u.User = nil
		return u.String()
	}
	return plain
}

// graphName makes a name of the host of an API, or of a file.
func graphName(address, from string) string {
	u, err := url.Parse(address)
	if address == "" || err != nil {
		return usualName("", from)
	}
	host := u.Hostname()
	if _, err := netip.ParseAddr(host); err == nil {
		return usualName(host, from)
	}
	labels := strings.Split(host, ".")
	if len(labels) > 1 {
		labels = labels[:len(labels)-1]
	}
	plain := slices.DeleteFunc(slices.Clone(labels), func(s string) bool { return s == "www" || s == "api" || s == "graphql" || s == "gql" })
	if len(plain) == 0 {
		plain = labels
	}
	return usualName(strings.Join(plain, "-"), from)
}
