package mcmprovider

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path"
	"strings"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"

	"github.com/gardener/machine-controller-manager/pkg/util/provider/driver"

	"machinist.example/mcm-provider/contract"
)

// How long calls may go on after SIGTERM: less than the 30 s that a pod has.
const grace = 25 * time.Second

// flags that every driver has.
type flags struct {
	address, state, metrics, logLevel string
}

func runProgram(provider func(context.Context) (driver.Driver, error), options Options) int {
	given, err := parse(os.Args[1:], options)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		fmt.Fprintf(os.Stderr, "error: %s\n(see --help for usage)\n", err)
		return 2
	}
	hiding := &secrets{}
	if err := startLogs(os.Stdout, given.logLevel, hiding); err != nil {
		fmt.Fprintf(os.Stderr, "error: --log-level: %s\n", err)
		return 2
	}
	if err := serve(provider, options, given, hiding); err != nil {
		slog.Error("ended", "err", err.Error())
		fmt.Fprintf(os.Stderr, "error: %s\n", err)
		return 1
	}
	return 0
}

func parse(arguments []string, options Options) (*flags, error) {
	given := &flags{}
	set := flag.NewFlagSet(options.Name+"-driver", flag.ContinueOnError)
	set.StringVar(&given.address, "address", "",
		"address on which to serve the driver contract: unix:///path/to/socket, or dns:///0.0.0.0:port?ca=FILE&cert=FILE&key=FILE")
	set.StringVar(&given.state, "state-directory", "", "directory in which fencing tokens are kept across restarts")
	set.StringVar(&given.metrics, "metrics", "",
		"IP:PORT on which to serve /metrics, /healthz and /readyz over plain HTTP (default: not served)")
	set.StringVar(&given.metrics, "metrics-address", "", "the same as --metrics")
	set.StringVar(&given.logLevel, "log-level", "info", "minimum level of log lines: error, warn, info or debug")
	if options.Flags != nil {
		options.Flags(set)
	}
	if err := set.Parse(arguments); err != nil {
		return nil, err
	}
	switch _, isLevel := verbosity[given.logLevel]; {
	case set.NArg() > 0:
		return nil, fmt.Errorf("unexpected argument %q", set.Arg(0))
	case given.address == "":
		return nil, errors.New("--address is missing")
	case given.state == "":
		return nil, errors.New("--state-directory is missing")
	case !isLevel:
		return nil, fmt.Errorf("--log-level %q: expected error, warn, info or debug", given.logLevel)
	}
	return given, nil
}

func serve(
	newProvider func(context.Context) (driver.Driver, error), options Options, given *flags, hiding *secrets,
) error {
	terminated, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	fencing, err := OpenFencing(given.state)
	if err != nil {
		return fmt.Errorf("--state-directory: %w", err)
	}
	provider, err := guarded(terminated, "its constructor", newProvider)
	if err != nil {
		return err
	}
	listener, credentials, err := listen(given.address)
	if err != nil {
		return err
	}
	if given.metrics != "" {
		page, err := serveMetrics(given.metrics)
		if err != nil {
			return fmt.Errorf("--metrics: %w", err)
		}
		defer page.Close()
	}
	server := grpc.NewServer(
		credentials,
		grpc.MaxRecvMsgSize(maxRequest),
		grpc.ChainUnaryInterceptor(measured, bounded),
		// On TCP managers ping every 10 s. Without this they would be cut off for it.
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 5 * time.Second, PermitWithoutStream: true}),
	)
	contract.RegisterDriverServiceServer(server, &service{
		provider: provider, options: options, fencing: fencing, secrets: hiding,
	})
	healthy := health.NewServer()
	grpc_health_v1.RegisterHealthServer(server, healthy)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		<-terminated.Done()
		stop() // a second signal ends the process at once
		slog.Info("stopping")
		healthy.Shutdown()
		// What still runs then is cancelled: its caller takes that for no answer, and asks again.
		timer := time.AfterFunc(grace, server.Stop)
		server.GracefulStop()
		timer.Stop()
	}()
	slog.Info("serving", "address", listener.Addr().String(), "driver", options.Name)
	if err := server.Serve(listener); err != nil {
		return err
	}
	<-ended
	return nil
}

var (
	serving = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "machinist_driver_serving",
		Help: "In a driver process: calls in progress.",
	}, []string{"method"})
	served = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "machinist_driver_served_seconds",
		Help:    "In a driver process: duration of calls in seconds, by result: OK, the code of the failure, or none for a cancelled call.",
		Buckets: []float64{0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600},
	}, []string{"method", "code"})
)

// measured counts calls of the contract, by what their responses say.
func measured(ctx context.Context, request any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	if _, isCall := request.(interface{ GetCall() *contract.Call }); !isCall {
		return handle(ctx, request) // GetCapabilities and health
	}
	method, started := path.Base(info.FullMethod), time.Now()
	serving.WithLabelValues(method).Inc()
	defer serving.WithLabelValues(method).Dec()
	response, err := handle(ctx, request)
	served.WithLabelValues(method, resultOf(ctx, response, err)).Observe(time.Since(started).Seconds())
	return response, err
}

func resultOf(ctx context.Context, response any, err error) string {
	answered, isAnswer := response.(interface{ GetFailure() *contract.Failure })
	switch {
	case ctx.Err() != nil || err != nil || !isAnswer:
		return "none"
	case answered.GetFailure() == nil:
		return "OK"
	default:
		return nameOf(answered.GetFailure().GetCode())
	}
}

// nameOf is a code as the original and the manager write it: CODE_NOT_FOUND is NotFound.
func nameOf(code contract.Code) string {
	var name strings.Builder
	for _, word := range strings.Split(strings.TrimPrefix(code.String(), "CODE_"), "_") {
		name.WriteString(word[:1] + strings.ToLower(word[1:]))
	}
	return name.String()
}

func checkMetricsAddress(address string) error {
	if host, _, err := net.SplitHostPort(address); err != nil || net.ParseIP(host) == nil {
		return fmt.Errorf("%q: expected IP:PORT, such as 0.0.0.0:9090", address)
	}
	return nil
}

// serveMetrics serves what the provider registers with Prometheus, and the calls of this program.
func serveMetrics(address string) (*http.Server, error) {
	for _, metric := range []prometheus.Collector{serving, served} {
		if err := prometheus.Register(metric); err != nil {
			return nil, err
		}
	}
	if err := checkMetricsAddress(address); err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	routes := http.NewServeMux()
	routes.Handle("GET /metrics", promhttp.Handler())
	ok := func(response http.ResponseWriter, _ *http.Request) { fmt.Fprintln(response, "ok") }
	routes.HandleFunc("GET /healthz", ok)
	routes.HandleFunc("GET /readyz", ok)
	page := &http.Server{Handler: routes, ReadHeaderTimeout: 10 * time.Second}
	go func() {
		if err := page.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			slog.Error("metrics are no longer served", "err", err.Error())
		}
	}()
	return page, nil
}
