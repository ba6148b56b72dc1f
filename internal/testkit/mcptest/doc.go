// Package mcptest holds no product code. Its tests put Ken between real
// clients and real servers: the official conformance suite, the Inspector, and
// servers that people publish. What comes from npm is installed by .ci/npm.sh,
// which prints the folder that KEN_NPM must name, and by .ci/clients.sh, which
// prints the one for KEN_CLIENTS. The command compare measures Ken beside other
// gateways.
package mcptest
