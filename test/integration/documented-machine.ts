import { type Manifest, parseManifests } from '../../hack/control-plane/apply.ts';
/** The two examples of the documentation of Mirantis Container Cloud, joined. */
export const DOCUMENTED_MACHINE = `
apiVersion: cluster.k8s.io/v1alpha1
kind: Machine
metadata:
  name: example-control-plane
  namespace: example-ns
  annotations:
    openstack-floating-ip-address: 172.16.246.182
  labels:
    kaas.mirantis.com/provider: openstack
    kaas.mirantis.com/region: eu
    cluster.sigs.k8s.io/cluster-name: example-cluster
    cluster.sigs.k8s.io/control-plane: "true" # remove for worker
spec:
  providerSpec:
    value:
      apiVersion: openstackproviderconfig.k8s.io/v1alpha1
      kind: OpenstackMachineProviderSpec
      availabilityZone: nova
      flavor: kaas.small
      image: bionic-server-cloudimg-amd64-20200724
      securityGroups:
        - kaas-sg-ctrl-abcdefgh-0123-4567-890a-0a1b2c3d4e5f
        - kaas-sg-glob-abcdefgh-0123-4567-890a-0a1b2c3d4e5f
      nodeLabels:
      - key: openstack-control-plane
        value: enabled
      bootFromVolume:
         enabled: true
         volumeSize: 120
      delete: false
      deletionPolicy: graceful
`;

/** As a manifest. */
export type DocumentedMachine = Manifest & { readonly spec: { readonly providerSpec: { readonly value: object } } };

/** The documented Machine in a namespace, with another name and with changes of its value. */
export function documentedMachine(
  namespace: string,
  { name, value = {} }: { readonly name?: string; readonly value?: object } = {},
): DocumentedMachine {
  const [manifest] = parseManifests(DOCUMENTED_MACHINE) as [DocumentedMachine];
  const metadata = { ...manifest.metadata, namespace, name: name ?? manifest.metadata.name };
  const spec = { providerSpec: { value: { ...manifest.spec.providerSpec.value, ...value } } };
  return { ...manifest, metadata, spec };
}
