package systemapi

import (
	"strings"

	"ken/internal/secret"
	"ken/internal/serve/httpapi/wire"
)

func (s *server) setup(r *wire.Request) (any, error) {
	if s.cfg.Setup == nil {
		return nil, without("what was found on this machine")
	}
	return s.cfg.Setup(r.Context()), nil
}

func (s *server) offers(r *wire.Request) (any, error) {
	if s.cfg.Offers == nil {
		return nil, without("the list of models")
	}
	list, err := s.cfg.Offers(r.Context(), r.PathValue("provider"))
	if err != nil {
		return nil, err
	}
	return offerList{list}, nil
}

func (s *server) setKey(r *wire.Request) (any, error) {
	var in keyValue
	if err := r.Decode(&in); err != nil {
		return nil, err
	}
	if s.cfg.SetKey == nil {
		return nil, without("storing keys")
	}
	key, err := secret.ReadValue(strings.NewReader(strings.TrimSpace(in.Key)))
	if err != nil {
		return nil, err
	}
	list, err := s.cfg.SetKey(r.Context(), r.Who, r.PathValue("provider"), key)
	if err != nil {
		return nil, err
	}
	return offerList{list}, nil
}
