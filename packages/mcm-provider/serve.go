// Code generated from examples/drivers/go/serve.go by npm run generate. DO NOT EDIT.

package mcmprovider

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"machinist.example/mcm-provider/contract"
)

// The largest request in bytes: a class with its provider_spec, a Machine and the contents of Secrets are more than gRPC takes by itself.
const maxRequest = 16 << 20

// listen opens a socket that only this user may use, or TCP with mutual TLS: whoever calls a driver commands its provider.
func listen(address string) (net.Listener, grpc.ServerOption, error) {
	if path, isSocket := strings.CutPrefix(address, "unix://"); isSocket && strings.HasPrefix(path, "/") {
		listener, err := listenOnSocket(path)
		return listener, grpc.Creds(insecure.NewCredentials()), err
	}
	where, err := url.Parse(address)
	if err != nil || where.Scheme != "dns" {
		return nil, nil, fmt.Errorf("--address %q: unix:///path or dns:///host:port?ca=FILE&cert=FILE&key=FILE is expected", address)
	}
	files := where.Query()
	for _, name := range []string{"ca", "cert", "key"} {
		if !files.Has(name) {
			return nil, nil, fmt.Errorf("--address %q: %s is missing: requests carry credentials", address, name)
		}
	}
	load := func() (*tls.Config, error) { return mutualTLS(files.Get("ca"), files.Get("cert"), files.Get("key")) }
	first, err := load()
	if err != nil {
		return nil, nil, fmt.Errorf("--address %q: %w", address, err)
	}
	var good atomic.Pointer[tls.Config]
	good.Store(first)
	// Read again for each connection, so that certificates are renewed without a restart. Files that are being written do not
	// fit: what was read before them is good until they do.
	config := &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
		fresh, err := load()
		if err != nil {
			slog.Error("the certificates cannot be read; those of before are used", "err", err.Error())
			return good.Load(), nil
		}
		good.Store(fresh)
		return fresh, nil
	}}
	listener, err := net.Listen("tcp", strings.TrimPrefix(where.Path, "/"))
	return listener, grpc.Creds(credentials.NewTLS(config)), err
}

func listenOnSocket(path string) (net.Listener, error) {
	if other, err := net.Dial("unix", path); err == nil {
		other.Close()
		return nil, fmt.Errorf("another driver listens on %s", path)
	}
	// A driver that was killed leaves its socket.
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	before := syscall.Umask(0o177)
	defer syscall.Umask(before)
	return net.Listen("unix", path)
}

func mutualTLS(ca, cert, key string) (*tls.Config, error) {
	own, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		return nil, err
	}
	signers, err := os.ReadFile(ca)
	if err != nil {
		return nil, err
	}
	clients := x509.NewCertPool()
	if !clients.AppendCertsFromPEM(signers) {
		return nil, fmt.Errorf("%s holds no certificate", ca)
	}
	return &tls.Config{
		Certificates: []tls.Certificate{own},
		ClientCAs:    clients,
		ClientAuth:   tls.RequireAndVerifyClientCert,
		NextProtos:   []string{"h2"},
		MinVersion:   tls.VersionTLS12,
	}, nil
}

// bounded gives each call its time, and writes one line about it. The context ends when the caller gives up, and a little before
// its time has passed, so that an answer with the reason still arrives. Whatever waits must wait with this context.
func bounded(ctx context.Context, request any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	asked, isCall := request.(interface{ GetCall() *contract.Call })
	if !isCall {
		return handle(ctx, request) // GetCapabilities and health
	}
	timeout := 10 * time.Minute // of a caller that does not say
	if given := asked.GetCall().GetTimeout(); given != nil {
		timeout = given.AsDuration()
	}
	ctx, cancel := context.WithTimeout(ctx, timeout-timeout/20)
	defer cancel()
	started := time.Now()
	response, err := handle(ctx, request)
	code := "none"
	if answered, ok := response.(interface{ GetFailure() *contract.Failure }); ok && err == nil {
		code = answered.GetFailure().GetCode().String()
	}
	slog.Info("answered", "method", info.FullMethod, "code", code, "ms", time.Since(started).Milliseconds())
	return response, err
}
