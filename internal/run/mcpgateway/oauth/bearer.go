package oauth

import (
	"net/http"
)

// Bearer returns [Handler.Client] for a transport that knows nothing of OAuth, as
// the older one over SSE: it puts the token on each request itself, and makes a
// request that was refused again, once, where Authorize could help.
func (h *Handler) Bearer(base *http.Client) *http.Client {
	c := h.Client(base)
	c.Transport = bearer{h, c.Transport}
	return c
}

type bearer struct {
	h    *Handler
	next http.RoundTripper // takes the token off what leaves the origin
}

func (b bearer) RoundTrip(req *http.Request) (*http.Response, error) {
	sent, res, err := b.try(req)
	if err != nil || res.StatusCode != http.StatusUnauthorized && res.StatusCode != http.StatusForbidden {
		return res, err
	}
	if req.Body != nil && req.Body != http.NoBody && req.GetBody == nil {
		return res, nil // it cannot be sent again
	}
	if err := b.h.Authorize(req.Context(), sent, res); err != nil {
		return nil, err
	}
	again := req.Clone(req.Context())
	if req.GetBody != nil {
		if again.Body, err = req.GetBody(); err != nil {
			return nil, err
		}
	}
	_, res, err = b.try(again)
	return res, err
}

func (b bearer) try(req *http.Request) (*http.Request, *http.Response, error) {
	g, err := b.h.grant(req.Context())
	if err != nil {
		if req.Body != nil {
			req.Body.Close()
		}
		return nil, nil, err
	}
	if g != nil {
		req = req.Clone(req.Context())
		req.Header.Set("Authorization", "Bearer "+g.Access)
	}
	res, err := b.next.RoundTrip(req)
	return req, res, err
}
