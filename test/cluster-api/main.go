// Runs reconcilers of Cluster API as they are published, against an API server of the tests: the infrastructure provider for DevMachine and
// DevCluster, whose machines live in memory, in one namespace those of Cluster and Machine, and in one that of kubeadm's bootstrap provider. It
// says "ready" in a line of its own when its caches are filled.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/bootstrap/kubeadm/reconcilers/kubeadmconfig"
	kubeadmsetup "sigs.k8s.io/cluster-api/bootstrap/kubeadm/setup"
	"sigs.k8s.io/cluster-api/controllers/clustercache"
	"sigs.k8s.io/cluster-api/core/reconcilers/cluster"
	"sigs.k8s.io/cluster-api/core/reconcilers/machine"
	"sigs.k8s.io/cluster-api/core/setup"
	"sigs.k8s.io/cluster-api/feature"
	"sigs.k8s.io/cluster-api/test/infrastructure/container"
	infrav1 "sigs.k8s.io/cluster-api/test/infrastructure/docker/api/v1beta2"
	"sigs.k8s.io/cluster-api/test/infrastructure/docker/controllers"
	cloudv1 "sigs.k8s.io/cluster-api/test/infrastructure/inmemory/pkg/cloud/api/v1alpha1"
	inmemoryruntime "sigs.k8s.io/cluster-api/test/infrastructure/inmemory/pkg/runtime"
	inmemoryserver "sigs.k8s.io/cluster-api/test/infrastructure/inmemory/pkg/server"
	"sigs.k8s.io/cluster-api/util/index"
)

const (
	name       = "contestant"
	syncPeriod = 10 * time.Minute
	// After so long without a connection the conditions of Nodes are Unknown.
	grace = 5 * time.Minute
)

func main() {
	namespace := flag.String("core-namespace", "", "namespace in which the reconcilers of Cluster and Machine run too")
	kubeadm := flag.String("kubeadm-namespace", "", "namespace in which kubeadm's bootstrap provider runs too")
	firstPort := flag.Int("first-port", 0, "first of the ports on 127.0.0.1 that clusters in memory listen on")
	lastPort := flag.Int("last-port", 0, "last of them")
	debugPort := flag.Int("debug-port", 0, "where the clusters in memory are described")
	flag.Parse()
	// Taints of Machines are behind a gate.
	if err := feature.MutableGates.Set("MachineTaintPropagation=true"); err != nil {
		panic(err)
	}
	ctrl.SetLogger(klog.Background())
	ports := inmemoryserver.CustomPorts{MinPort: int32(*firstPort), MaxPort: int32(*lastPort), DebugPort: int32(*debugPort)}
	if err := run(ctrl.SetupSignalHandler(), *namespace, *kubeadm, ports); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run runs the provider in all namespaces, the core and kubeadm in one each: a manager for each, as they are programs of their own elsewhere.
func run(ctx context.Context, namespace, kubeadm string, ports inmemoryserver.CustomPorts) error {
	provider, clusters, _, err := newManager(ctx, "", setup.ManagerCacheOptions)
	if err != nil {
		return err
	}
	if err := addProvider(ctx, provider, clusters, ports); err != nil {
		return err
	}
	managers := []ctrl.Manager{provider}
	if namespace != "" {
		core, clusters, _, err := newManager(ctx, namespace, setup.ManagerCacheOptions)
		if err != nil {
			return err
		}
		if err := addCore(ctx, core, clusters); err != nil {
			return err
		}
		managers = append(managers, core)
	}
	if kubeadm != "" {
		bootstrap, clusters, secrets, err := newManager(ctx, kubeadm, kubeadmsetup.ManagerCacheOptions)
		if err != nil {
			return err
		}
		if err := (&kubeadmconfig.Reconciler{
			Client: bootstrap.GetClient(), SecretCachingClient: secrets, APIReader: bootstrap.GetAPIReader(), ClusterCache: clusters,
			TokenTTL: kubeadmconfig.DefaultTokenTTL,
		}).SetupWithManager(ctx, bootstrap, controller.Options{MaxConcurrentReconciles: 2}); err != nil {
			return err
		}
		managers = append(managers, bootstrap)
	}
	ended := make(chan error)
	for _, mgr := range managers {
		go func() { ended <- mgr.Start(ctx) }()
	}
	for _, mgr := range managers {
		if !mgr.GetCache().WaitForCacheSync(ctx) {
			return <-ended
		}
	}
	fmt.Println("ready")
	return <-ended
}

// cacheOptionsFunc says what a program caches: of Secrets each keeps what it needs.
type cacheOptionsFunc = func(scheme *runtime.Scheme, controllerName string, watchNamespace string, syncPeriod time.Duration) cache.Options

// newManager makes a manager with the options of the published programs, and what connects it to the clusters of Machines.
func newManager(ctx context.Context, namespace string, cacheOptions cacheOptionsFunc) (ctrl.Manager, clustercache.ClusterCache, client.Client, error) {
	restConfig, err := ctrl.GetConfig()
	if err != nil {
		return nil, nil, nil, err
	}
	restConfig.QPS, restConfig.Burst = 200, 400
	scheme := schemeOf(clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, storagev1.AddToScheme, bootstrapv1.AddToScheme, clusterv1.AddToScheme, infrav1.AddToScheme)
	mgr, err := ctrl.NewManager(restConfig, ctrl.Options{
		Scheme:     scheme,
		Metrics:    server.Options{BindAddress: "0"},
		Cache:      cacheOptions(scheme, name+namespace, namespace, syncPeriod),
		Client:     setup.ManagerClientOptions(),
		Controller: config.Controller{SkipNameValidation: ptr.To(true)},
	})
	if err != nil {
		return nil, nil, nil, err
	}
	secrets, err := setup.CreateSecretCachingClient(mgr)
	if err != nil {
		return nil, nil, nil, err
	}
	clusters, err := clustercache.SetupWithManager(ctx, mgr, clustercache.Options{
		SecretClient: secrets,
		Cache:        setup.ClusterCacheCacheOptions(),
		Client:       setup.ClusterCacheClientOptions(name, 200, 400),
	}, controller.Options{MaxConcurrentReconciles: 2})
	return mgr, clusters, secrets, err
}

// addProvider adds DevCluster and DevMachine.
func addProvider(ctx context.Context, mgr ctrl.Manager, clusters clustercache.ClusterCache, ports inmemoryserver.CustomPorts) error {
	cloud := inmemoryruntime.NewManager(schemeOf(cloudv1.AddToScheme, corev1.AddToScheme, appsv1.AddToScheme, rbacv1.AddToScheme))
	if err := cloud.Start(ctx); err != nil {
		return err
	}
	servers, err := inmemoryserver.NewWorkloadClustersMux(cloud, "127.0.0.1", ports)
	if err != nil {
		return err
	}
	// Nothing is ever asked of it: there are no machines in containers.
	containers, err := container.NewFakeClient()
	if err != nil {
		return err
	}
	if err := (&controllers.DevClusterReconciler{
		Client: mgr.GetClient(), ContainerRuntime: containers, InMemoryManager: cloud, APIServerMux: servers,
	}).SetupWithManager(ctx, mgr, controller.Options{}); err != nil {
		return err
	}
	return (&controllers.DevMachineReconciler{
		Client: mgr.GetClient(), ContainerRuntime: containers, ClusterCache: clusters, InMemoryManager: cloud, APIServerMux: servers,
	}).SetupWithManager(ctx, mgr, controller.Options{MaxConcurrentReconciles: 4})
}

// addCore adds Cluster and Machine.
func addCore(ctx context.Context, mgr ctrl.Manager, clusters clustercache.ClusterCache) error {
	if err := index.AddDefaultIndexes(ctx, mgr); err != nil {
		return err
	}
	if err := (&cluster.Reconciler{
		Client: mgr.GetClient(), APIReader: mgr.GetAPIReader(), ClusterCache: clusters,
		RemoteConnectionGracePeriod: grace,
	}).SetupWithManager(ctx, mgr, controller.Options{MaxConcurrentReconciles: 2}); err != nil {
		return err
	}
	return (&machine.Reconciler{
		Client: mgr.GetClient(), APIReader: mgr.GetAPIReader(), ClusterCache: clusters,
		RemoteConditionsGracePeriod: grace,
	}).SetupWithManager(ctx, mgr, controller.Options{MaxConcurrentReconciles: 4})
}

func schemeOf(add ...func(*runtime.Scheme) error) *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, one := range add {
		if err := one(scheme); err != nil {
			panic(err)
		}
	}
	return scheme
}
