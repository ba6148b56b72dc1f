package mcpserver

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"ken/capability"
	"ken/internal/door"
	"ken/internal/untrusted"
)

// appsExtension is the extension by which servers have pages (MCP Apps, SEP-1865).
const appsExtension = "io.modelcontextprotocol/ui"

// withApps marks the menus of clients that show pages: they have the tools with a
// page on every surface, and the tools that only pages may call. Such a client keeps
// these from its model.
const withApps = "+apps"

// surfaceOf returns the surface of a menu.
func surfaceOf(menu string) string {
	return strings.TrimSuffix(strings.TrimSuffix(menu, withApps), textOnly)
}

// declares reports whether a request of the protocol without sessions says that its
// client knows an extension.
func declares(p mcp.Params, extension string) bool {
	if !isModern(p) {
		return false
	}
	caps, _ := p.GetMeta()[mcp.MetaKeyClientCapabilities].(map[string]any)
	extensions, _ := caps["extensions"].(map[string]any)
	_, ok := extensions[extension]
	return ok
}

// viewOf is what a menu is made from. It has what only pages may call if the client
// shows pages; nothing else may use such a view.
func (a *audience) viewOf(menu string) door.View {
	if !strings.HasSuffix(menu, withApps) {
		return a.view()
	}
	return a.s.cfg.Door.ViewFor(door.Viewer{Principal: a.who, Surface: "mcp", Origin: capability.ByApp})
}

// page returns what a server says of its pages and a tool.
func (s *Server) page(e *door.Entry) Page {
	if s.cfg.Page == nil || !strings.HasPrefix(string(e.ID), "mcp:") {
		return Page{}
	}
	return s.cfg.Page(e)
}

// byApp decides whether a call of a tool by its name on the menu is the call of a
// page. Only pages may call some tools; of the others the client does not say who
// calls, and the call counts as the model's.
func (ep *endpoint) byApp(menu string, id capability.ID) bool {
	if !strings.HasSuffix(menu, withApps) {
		return false
	}
	e, err := ep.viewOf(menu).Lookup(string(id))
	return err == nil && ep.s.page(e).Only
}

// appTarget finds the tool that a page calls. A page knows the tools of its server
// by the server's own names, and not by those of the menu.
// So it is a tool of a server whose page the client has read; if there are two, the
// call fails.
func (ep *endpoint) appTarget(sess *session, name string) (capability.ID, error) {
	menu := sess.menu()
	if !strings.HasSuffix(menu, withApps) {
		return "", nil
	}
	var ids []string
	for e := range ep.viewOf(menu).All() {
		if e.Name == name && strings.HasPrefix(string(e.ID), "mcp:") && callable(e) && !ep.s.page(e).Never && sess.hasOpened(e.Category) {
			ids = append(ids, string(e.ID))
		}
	}
	switch len(ids) {
	case 0:
		return "", nil
	case 1:
		return capability.ID(ids[0]), nil
	}
	return "", fault(jsonrpc.CodeInvalidParams, fmt.Sprintf("the tool name %s of a page is not clear: it can be %s; disable one of the servers for this client",
		untrusted.Line(name, 80), strings.Join(ids, " or ")), nil)
}

// addPages makes the pages readable that tools name, whether or not their server
// lists them. If two servers have a page of the same address, the second one has
// another address for clients.
func (o *offerings) addPages(s *Server, tools []*door.Entry) {
	for _, e := range tools {
		page := s.page(e).Address
		reader, ok := o.servers[e.Category]
		if !ok || reader.reader == "" {
			continue
		}
		reader.name, reader.mime = page, appMIME
		at := page
		if first, taken := o.resource[at]; taken && first.server != e.Category {
			at = pageAlias(e.Category, page)
		}
		if _, known := o.resource[at]; !known {
			o.resource[at] = reader
		}
	}
}

const appMIME = "text/html;profile=mcp-app"

// pageAlias is the address of a page whose own address is another server's.
func pageAlias(server, page string) string {
	return "ui://ken/" + url.PathEscape(server) + "/" + url.PathEscape(page)
}

// atAlias returns the members of a tool with its page at the address that clients
// read it from.
func (o *offerings) atAlias(e *door.Entry, page string, extra json.RawMessage) json.RawMessage {
	at, known := o.resource[page]
	if !known || at.server == e.Category {
		return extra
	}
	alias := pageAlias(e.Category, page)
	out, err := replacePage(extra, alias)
	if err != nil || o.resource[alias].server != e.Category {
		return nil // without its page the tool is an ordinary one
	}
	return out
}

func replacePage(extra json.RawMessage, page string) (json.RawMessage, error) {
	var all, meta, ui map[string]json.RawMessage
	if err := errors.Join(json.Unmarshal(extra, &all), json.Unmarshal(all["_meta"], &meta)); err != nil {
		return nil, err
	}
	_ = json.Unmarshal(meta["ui"], &ui) // there is none beside the older key
	if ui == nil {
		ui = map[string]json.RawMessage{}
	}
	at, err := json.Marshal(page)
	if err != nil {
		return nil, err
	}
	ui["resourceUri"] = at
	delete(meta, "ui/resourceUri")
	var errs [3]error
	meta["ui"], errs[0] = json.Marshal(ui)
	all["_meta"], errs[1] = json.Marshal(meta)
	extra, errs[2] = json.Marshal(all)
	return extra, errors.Join(errs[:]...)
}
