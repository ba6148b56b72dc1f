// Package servercard tells MCP clients where to connect, before they do (SEP-2127):
// the card of the server beside its address, and a catalog with that one card at
// the well-known address. Both are public and say nothing about tools.
package servercard

import (
	"encoding/json"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

const (
	// CardPath is the address of the card: that of MCP, followed by /server-card.
	CardPath = "/mcp/server-card"

	// CatalogPath is the address of the catalog.
	CatalogPath = "/.well-known/mcp/catalog.json"

	cardType = "application/mcp-server-card+json"

	// schema is required in a card, in exactly this form.
	schema = "https://static.modelcontextprotocol.io/schemas/v2/server-card.schema.json"
)

// Config says what is in the card.
type Config struct {
	Version   string   // of Ken
	Protocols []string // versions of MCP
	Open      bool     // no token is needed
}

type header struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Required    bool   `json:"isRequired"`
	Secret      bool   `json:"isSecret"`
}

type remote struct {
	Type      string   `json:"type"`
	URL       string   `json:"url"`
	Headers   []header `json:"headers,omitempty"`
	Protocols []string `json:"supportedProtocolVersions,omitempty"`
}

type card struct {
	Schema      string   `json:"$schema"`
	Name        string   `json:"name"`
	Title       string   `json:"title"`
	Description string   `json:"description"`
	Version     string   `json:"version"`
	Remotes     []remote `json:"remotes"`
}

type entry struct {
	Identifier  string `json:"identifier"`
	DisplayName string `json:"displayName"`
	Type        string `json:"type"`
	URL         string `json:"url"`
}

type catalog struct {
	Version string  `json:"specVersion"`
	Entries []entry `json:"entries"`
}

// ServeHTTP answers for both addresses. Hosts that are not the server's are refused
// before it.
func (c Config) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Access-Control-Allow-Origin", "*")
	h.Set("Access-Control-Allow-Methods", "GET")
	h.Set("Access-Control-Allow-Headers", "Content-Type")
	h.Set("Cache-Control", "public, max-age=3600")
	h.Set("Vary", "Host, X-Forwarded-Proto")
	if r.Method == http.MethodOptions {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	root := "http://" + r.Host
	if r.TLS != nil || r.Header.Get("X-Forwarded-Proto") == "https" {
		root = "https://" + r.Host
	}
	host, named := domain(r.Host)
	var body any
	if r.URL.Path == CatalogPath {
		h.Set("Content-Type", "application/json")
		body = catalog{Version: "draft", Entries: []entry{{Identifier: "urn:air:" + host + ":ken", DisplayName: "Ken", Type: cardType, URL: root + CardPath}}}
	} else {
		h.Set("Content-Type", cardType)
		to := remote{Type: "streamable-http", URL: root + "/mcp", Protocols: c.Protocols}
		if !c.Open {
			to.Headers = []header{{Name: "Authorization", Description: "Bearer, a space and a token of this Ken (ken token)", Required: true, Secret: true}}
		}
		body = card{
			Schema: schema, Name: reversed(host, named) + "/ken", Title: "Ken", Version: c.Version,
			Description: "One gateway in front of MCP servers: finds tools, asks for approval, records calls.",
			Remotes:     []remote{to},
		}
	}
	if r.Method == http.MethodHead {
		return
	}
	_ = json.NewEncoder(w).Encode(body) // the client has gone
}

// domain returns the host without its port, and whether it is a name.
func domain(host string) (string, bool) {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
	if _, err := netip.ParseAddr(host); err == nil || host == "localhost" || host == "" {
		return "localhost", false
	}
	return host, true
}

// reversed returns a name with its parts in reverse, as cards have it.
func reversed(host string, named bool) string {
	if !named {
		return host
	}
	parts := strings.Split(host, ".")
	slices.Reverse(parts)
	return strings.Join(parts, ".")
}
