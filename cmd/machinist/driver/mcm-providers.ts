/** How the driver of a provider of machine-controller-manager is made, as the `main` of its own program does it. */
export interface McmProvider {
  /** Of the driver: its program is NAME-driver. */
  readonly name: string;
  /** Go imports, relative to the provider's module where they begin with `/`; `alias=path` for another name. */
  readonly imports: readonly string[];
  /** Go expression of type `driver.Driver`, or of a type without InitializeMachine: see `isOlder`. */
  readonly expression: string;
  /** Go statements before it; they may return an error. */
  readonly statements?: readonly string[];
  /** Go statements before the flags are parsed. */
  readonly variables?: readonly string[];
  /** Go statements that add flags to `set`. */
  readonly flags?: readonly string[];
  /** Whether it was written before the interface had InitializeMachine. */
  readonly isOlder?: boolean;
  /** Value of `provider` in its MachineClasses; undefined: it accepts any. */
  readonly provider: string | undefined;
  /** What ListMachines returns. */
  readonly listScope: 'class' | 'cluster';
  /** Whether neither GetMachineStatus nor CreateMachine finds the VM of a machine without a provider ID. */
  readonly findsByID?: boolean;
  /** Whether CreateMachine completes a VM of the machine that it finds. */
  readonly completesCreations?: boolean;
  /** Optional methods of the contract that it answers with Unimplemented. */
  readonly unimplemented: readonly OptionalMethod[];
  /** Keys of its Secret, beside `userData`. */
  readonly secretKeys: readonly string[];
  /** Those that its own errors do not name when they are missing; of each list, one is enough. */
  readonly requiredKeys?: readonly (readonly string[])[];
}

type OptionalMethod = 'InitializeMachine' | 'ListMachines' | 'GetVolumeIDs';

const GARDENER = 'github.com/gardener/machine-controller-manager-provider-';

/** The public providers, by their Go modules: facts of their sources, which the page about them explains. */
export const MCM_PROVIDERS: Readonly<Record<string, McmProvider>> = {
  [`${GARDENER}aws`]: {
    name: 'aws',
    imports: ['/pkg/aws', '/pkg/cpi'],
    expression: 'aws.NewAWSDriver(&cpi.ClientProvider{})',
    provider: 'AWS',
    listScope: 'cluster',
    unimplemented: [],
    secretKeys: ['providerAccessKeyId', 'providerSecretAccessKey'],
  },
  [`${GARDENER}azure`]: {
    name: 'azure',
    imports: ['/pkg/azure/access', '/pkg/azure/provider'],
    expression: 'provider.NewDefaultDriver(access.NewDefaultAccessFactory())',
    provider: 'Azure',
    listScope: 'cluster',
    unimplemented: ['InitializeMachine'],
    secretKeys: ['clientID', 'clientSecret', 'subscriptionID', 'tenantID'],
  },
  [`${GARDENER}gcp`]: {
    name: 'gcp',
    imports: ['/pkg/gcp'],
    expression: 'gcp.NewGCPPlugin(&gcp.PluginSPIImpl{})',
    provider: 'GCP',
    listScope: 'cluster',
    unimplemented: ['InitializeMachine'],
    secretKeys: ['serviceAccountJSON'],
  },
  [`${GARDENER}alicloud`]: {
    name: 'alicloud',
    imports: ['/pkg/alicloud', '/pkg/spi'],
    expression: 'alicloud.NewAlicloudPlugin(&spi.PluginSPIImpl{})',
    provider: 'Alicloud',
    listScope: 'cluster',
    unimplemented: ['InitializeMachine'],
    secretKeys: ['alicloudAccessKeyID', 'alicloudAccessKeySecret'],
    requiredKeys: [
      ['alicloudAccessKeyID', 'accessKeyID'],
      ['alicloudAccessKeySecret', 'accessKeySecret'],
    ],
  },
  [`${GARDENER}openstack`]: {
    name: 'openstack',
    imports: [
      '/pkg/apis/openstack/install',
      'openstack=/pkg/driver',
      'k8s.io/apimachinery/pkg/runtime',
      'k8s.io/apimachinery/pkg/runtime/serializer',
    ],
    statements: [
      'scheme := runtime.NewScheme()',
      'if err := install.AddToScheme(scheme); err != nil {',
      '\treturn nil, err',
      '}',
      'decoder := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDecoder()',
    ],
    expression: 'openstack.NewOpenstackDriver(decoder)',
    provider: 'OpenStack',
    listScope: 'cluster',
    completesCreations: true,
    unimplemented: ['InitializeMachine'],
    secretKeys: ['authURL', 'domainName', 'tenantName', 'username', 'password'],
  },
  [`${GARDENER}vsphere`]: {
    name: 'vsphere',
    imports: ['/pkg/vsphere'],
    expression: 'vsphere.NewVspherePlugin()',
    isOlder: true,
    provider: 'vsphere',
    listScope: 'cluster',
    unimplemented: ['InitializeMachine'],
    secretKeys: ['vsphereHost', 'vsphereUsername', 'vspherePassword'],
  },
  [`${GARDENER}equinix-metal`]: {
    name: 'equinix-metal',
    imports: ['metal=/pkg/provider', '/pkg/spi'],
    expression: 'metal.NewProvider(&spi.PluginSPIImpl{})',
    isOlder: true,
    provider: 'EquinixMetal',
    listScope: 'cluster',
    findsByID: true,
    unimplemented: ['InitializeMachine', 'GetVolumeIDs'],
    secretKeys: ['apiToken'],
  },
  [`${GARDENER}kubevirt`]: {
    name: 'kubevirt',
    imports: [
      '/pkg/kubevirt',
      'k8s.io/client-go/kubernetes/scheme',
      'cdi=kubevirt.io/containerized-data-importer/pkg/apis/core/v1alpha1',
    ],
    statements: ['if err := cdi.AddToScheme(scheme.Scheme); err != nil {', '\treturn nil, err', '}'],
    expression: 'kubevirt.NewKubevirtPlugin()',
    isOlder: true,
    provider: undefined,
    listScope: 'cluster',
    unimplemented: ['InitializeMachine', 'GetVolumeIDs'],
    secretKeys: ['kubeconfig'],
  },
  'github.com/23technologies/machine-controller-manager-provider-hcloud': {
    name: 'hcloud',
    imports: ['/pkg/hcloud'],
    expression: 'hcloud.NewHCloudProvider()',
    provider: undefined,
    listScope: 'cluster',
    unimplemented: ['InitializeMachine', 'GetVolumeIDs'],
    secretKeys: ['token'],
    requiredKeys: [['token']],
  },
  'github.com/stackitcloud/machine-controller-manager-provider-stackit': {
    name: 'stackit',
    imports: ['stackit=/pkg/provider', '/pkg/spi'],
    expression: 'stackit.NewProvider(&spi.PluginSPIImpl{})',
    provider: 'stackit',
    listScope: 'class',
    unimplemented: ['InitializeMachine', 'GetVolumeIDs'],
    secretKeys: ['project-id', 'serviceaccount.json'],
  },
  'github.com/ironcore-dev/machine-controller-manager-provider-ironcore-metal': {
    name: 'ironcore-metal',
    imports: ['clients=/pkg/client', '/pkg/cmd', '/pkg/metal'],
    variables: ['kubeconfig := ""', 'policy := cmd.NodeNamePolicyServerClaimName'],
    flags: [
      'set.StringVar(&kubeconfig, "metal-kubeconfig", "", "kubeconfig of the metal cluster")',
      'set.Var(&policy, "node-name-policy", "what names a Node: BMCName, ServerName or ServerClaimName")',
    ],
    statements: [
      'access, namespace, err := clients.NewProviderAndNamespace(ctx, kubeconfig)',
      'if err != nil {',
      '\treturn nil, err',
      '}',
    ],
    expression: 'metal.NewDriver(access, namespace, policy)',
    provider: 'ironcore-metal',
    listScope: 'cluster',
    unimplemented: ['GetVolumeIDs'],
    secretKeys: [],
  },
};
