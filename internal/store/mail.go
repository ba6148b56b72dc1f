package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// A Mail is a message for another process that has the same store.
type Mail struct {
	To   string // the name by which that process receives
	Body []byte
}

// A mailer is a database that passes messages between processes.
type mailer interface {
	send(ctx context.Context, mails []Mail) error
	receive(ctx context.Context, name string) ([][]byte, error)
	sweepMail(ctx context.Context) error
	connections() int64 // how many were made
}

// Messages that are not received are removed after mailLife. Each process that receives
// looks for such messages every mailSweep.
const (
	mailLife  = time.Minute
	mailSweep = 30 * time.Second
	mailAtOne = 64 // messages that are received together
)

func mailPrefix(name string) string { return Key("mail", name) + "/" }

// Send passes messages to other processes, in one query. A message that is sent is lost
// if its receiver does not run, or if the server crashes. The messages of one sender
// arrive in order. Only PostgreSQL has messages.
func (s *Store) Send(ctx context.Context, mails ...Mail) error {
	m, err := s.mailer(ctx)
	if err == nil && len(mails) > 0 {
		err = m.send(ctx, mails)
	}
	if err != nil {
		return s.fail("send messages through", err)
	}
	return nil
}

// Receive passes the messages for a name to take until ctx ends or the store closes.
// Lost is called when messages may have been lost. Only one process may receive for a
// name.
func (s *Store) Receive(ctx context.Context, name string, take func(body []byte), lost func()) error {
	m, err := s.mailer(ctx)
	if err != nil {
		return s.fail("receive messages through", err)
	}
	defer s.bell.attend()()
	broken, made := false, m.connections()
	for swept := time.Now(); ; {
		rung := s.bell.rung(mailPrefix(name)) // before reading, so that what comes meanwhile rings
		bodies, err := m.receive(ctx, name)
		if end := s.ready(ctx); end != nil {
			return s.fail("receive messages through", end)
		}
		if err != nil {
			broken = true
			select {
			case <-time.After(listenAgain):
			case <-ctx.Done():
			case <-s.closed:
			}
			continue
		}
		if n := m.connections(); broken || n != made { // one that broke while it was idle was replaced without an error
			broken, made = false, n
			lost()
		}
		for _, body := range bodies {
			take(body)
		}
		if time.Since(swept) >= mailSweep {
			swept = time.Now()
			_ = m.sweepMail(ctx) // the next one does it otherwise
		}
		if len(bodies) >= mailAtOne {
			continue
		}
		select {
		case <-rung:
		case <-ctx.Done():
		case <-s.closed:
		}
	}
}

func (s *Store) mailer(ctx context.Context) (mailer, error) {
	if err := s.ready(ctx); err != nil {
		return nil, err
	}
	m, ok := s.db.(mailer)
	if !ok {
		return nil, fmt.Errorf("%w: only PostgreSQL passes messages between processes", ErrInvalid)
	}
	return m, nil
}

// makeMail makes the table of messages. It is not among the versioned tables: what is
// in it is of use for seconds, and a version without it works beside this one. It is
// unlogged, so a commit does not wait for the disk.
func (s *postgres) makeMail(ctx context.Context) error {
	if s.mail.Load() {
		return nil
	}
	err := pgx.BeginTxFunc(ctx, s.pool, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
		var there bool
		if err := tx.QueryRow(ctx, "SELECT to_regclass('ken_mail') IS NOT NULL").Scan(&there); err != nil || there {
			return err
		}
		for _, step := range []string{
			"SELECT pg_advisory_xact_lock(hashtextextended('ken store ' || current_schema(), 0))",
			`CREATE UNLOGGED TABLE IF NOT EXISTS ken_mail (
				id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, receiver text NOT NULL, sent timestamptz NOT NULL DEFAULT now(), body bytea NOT NULL)`,
			"CREATE INDEX IF NOT EXISTS ken_mail_receiver ON ken_mail (receiver, id)",
		} {
			if _, err := tx.Exec(ctx, step); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		s.mail.Store(true)
	}
	return err
}

func (s *postgres) send(ctx context.Context, mails []Mail) error {
	ctx, cancel := context.WithTimeout(ctx, postgresWait)
	defer cancel()
	if err := s.makeMail(ctx); err != nil {
		return s.fail(err)
	}
	var to []string
	var bodies [][]byte
	var notice strings.Builder
	notice.WriteString(s.name)
	for _, m := range mails {
		to, bodies = append(to, m.To), append(bodies, m.Body)
		fmt.Fprintf(&notice, " %s", mailPrefix(m.To))
	}
	text := notice.String()
	if len(text) > longestNotice {
		text = s.name + " mail/"
	}
	_, err := s.pool.Exec(ctx, "WITH sent AS (INSERT INTO ken_mail (receiver, body) SELECT * FROM unnest($1::text[], $2::bytea[])) SELECT pg_notify('"+channel+"', $3)", to, bodies, text)
	return s.fail(err)
}

func (s *postgres) receive(ctx context.Context, name string) (out [][]byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, postgresWait)
	defer cancel()
	if err := s.makeMail(ctx); err != nil {
		return nil, s.fail(err)
	}
	rows, err := s.pool.Query(ctx, `WITH taken AS (DELETE FROM ken_mail WHERE id IN (SELECT id FROM ken_mail WHERE receiver = $1 ORDER BY id LIMIT $2) RETURNING id, body)
		SELECT body FROM taken ORDER BY id`, name, mailAtOne)
	if err == nil {
		out, err = pgx.CollectRows(rows, pgx.RowTo[[]byte])
	}
	if err != nil && !errors.Is(err, context.Canceled) {
		s.pool.Reset() // a connection that waited may have been broken, and so the others
	}
	return out, s.fail(err)
}

func (s *postgres) connections() int64 { return s.made.Load() }

func (s *postgres) sweepMail(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, postgresWait)
	defer cancel()
	_, err := s.pool.Exec(ctx, "DELETE FROM ken_mail WHERE sent < now() - make_interval(secs => $1)", mailLife.Seconds())
	return s.fail(err)
}
