// A driver of Machinist: it makes virtual machines at one provider, as a manager asks for them over gRPC. Its provider is a folder
// in which each VM is a file (cloud.go): replace that, and keep the rest.
//
//	cloud.go     the provider
//	driver.go    the methods of the contract, proto/machine/driver/v1/driver.proto
//	fencing.go   managers that were replaced are refused
//	serve.go     where it listens
//	contract/    generated from the contract
package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"

	"example.com/folder-driver/contract"
)

//go:generate buf generate

// How long running calls may go on after SIGTERM.
const grace = 5 * time.Second

func main() {
	address := flag.String("address", "", "unix:///path, or dns:///host:port?ca=FILE&cert=FILE&key=FILE")
	state := flag.String("state-directory", "", "directory in which fencing tokens are kept across restarts")
	folder := flag.String("cloud", "", "the folder that is the provider")
	latency := flag.Duration("cloud-latency", 0, "how long each request to the provider takes")
	flag.Parse()
	for _, name := range []string{"address", "state-directory", "cloud"} {
		if flag.Lookup(name).Value.String() == "" {
			fmt.Fprintf(os.Stderr, "--%s is missing; --help shows all flags\n", name)
			os.Exit(2)
		}
	}
	// JSON on standard output. Nothing of secret_data is ever logged.
	slog.SetDefault(slog.New(slog.NewJSONHandler(os.Stdout, nil)))
	if err := run(*address, *state, &Cloud{Folder: *folder, Latency: *latency}); err != nil {
		slog.Error("ended", "err", err.Error())
		os.Exit(1)
	}
}

// run serves until SIGTERM or SIGINT.
func run(address, state string, cloud *Cloud) error {
	if err := cloud.Open(); err != nil {
		return err
	}
	fencing, err := OpenFencing(state)
	if err != nil {
		return err
	}
	listener, credentials, err := listen(address)
	if err != nil {
		return err
	}
	server := grpc.NewServer(
		credentials,
		grpc.MaxRecvMsgSize(maxRequest),
		grpc.UnaryInterceptor(bounded),
		// On TCP managers ping every 10 s. Without this they would be cut off for it.
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 5 * time.Second, PermitWithoutStream: true}),
	)
	contract.RegisterDriverServiceServer(server, &Driver{Cloud: cloud, Fencing: fencing})
	healthy := health.NewServer()
	grpc_health_v1.RegisterHealthServer(server, healthy)

	terminated, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		<-terminated.Done()
		slog.Info("stopping")
		healthy.Shutdown()
		// What still runs then is cancelled: its caller takes that for no answer, and asks again.
		timer := time.AfterFunc(grace, server.Stop)
		server.GracefulStop()
		timer.Stop()
	}()
	slog.Info("serving", "address", listener.Addr().String())
	if err := server.Serve(listener); err != nil {
		return err
	}
	<-ended
	return nil
}
