package manageapi

import (
	"context"
	"net/http"
	"sync"
	"time"

	"ken/internal/serve/httpapi/wire"
)

// LoginState is how a login stands.
type LoginState struct {
	State   string `json:"state"`             // none, waiting, done or failed
	Address string `json:"address,omitempty"` // to open, while it waits
	Error   string `json:"error,omitempty"`
}

// A login is one that was begun.
type login struct {
	state  LoginState
	cancel context.CancelFunc
}

const loginLife = 10 * time.Minute

// beginLogin begins a login and answers with the address that the person must
// open. An earlier login to the same server ends.
func (s *server) beginLogin(r *wire.Request) (any, error) {
	if p := s.refused(r.Who); p != nil {
		return nil, p
	}
	name := r.PathValue("name")
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), loginLife)
	stop := context.AfterFunc(s.cfg.Waiting, cancel)
	now := &login{state: LoginState{State: "waiting"}, cancel: cancel}
	s.mu.Lock()
	if before := s.logins[name]; before != nil {
		before.cancel()
	}
	s.logins[name] = now
	s.mu.Unlock()
	told := make(chan struct{})
	tell := sync.OnceFunc(func() { close(told) }) // a login may name its address again
	ended := make(chan error, 1)
	go func() {
		defer stop()
		defer cancel()
		err := s.cfg.Login(ctx, name, func(_ context.Context, address string) error {
			s.mu.Lock()
			now.state.Address = address
			s.mu.Unlock()
			tell()
			return nil
		})
		if err == nil {
			err = s.cfg.Record(ctx, r.Who, "mcp", "login", "mcp:"+name, nil)
		}
		s.mu.Lock()
		now.state = LoginState{State: "done"}
		if err != nil {
			now.state = LoginState{State: "failed", Error: err.Error()}
		}
		s.mu.Unlock()
		if err == nil {
			_ = s.cfg.Changed(ctx) // the state of the server says what does not work
		}
		ended <- err
	}()
	select {
	case <-told:
	case err := <-ended:
		if err != nil {
			return nil, err
		}
	case <-r.Context().Done():
		cancel()
		return nil, &wire.Problem{Status: http.StatusGatewayTimeout, Code: "unavailable", Detail: "the server did not say in time where to log in"}
	}
	return s.loginState(r)
}

func (s *server) loginState(r *wire.Request) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.logins[r.PathValue("name")]; l != nil {
		return l.state, nil
	}
	return LoginState{State: "none"}, nil
}
