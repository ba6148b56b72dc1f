package db

import "net/url"

// host returns the host of a server, without port; "" for files and sockets.
func (c Connection) host() string {
	if c.Engine == SQLite {
		return ""
	}
	u, err := url.Parse(c.URL)
	if err != nil {
		return ""
	}
	return u.Hostname()
}
