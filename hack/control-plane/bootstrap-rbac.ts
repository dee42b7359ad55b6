import type { Manifest } from './apply.ts';

/**
 * What lets a machine join with a bootstrap token, as kubeadm sets it up: ask for a client certificate, have it approved
 * without a person, and have it renewed later. Each entry: the group that is bound, and the built-in ClusterRole.
 */
const BINDINGS = [
  ['machinist:bootstrap', 'system:bootstrappers', 'system:node-bootstrapper'],
  [
    'machinist:approve-new-nodes',
    'system:bootstrappers',
    'system:certificates.k8s.io:certificatesigningrequests:nodeclient',
  ],
  ['machinist:renew-nodes', 'system:nodes', 'system:certificates.k8s.io:certificatesigningrequests:selfnodeclient'],
] as const;

/** The ClusterRoleBindings for TLS bootstrap of kubelets; applied at each start. */
export const bootstrapRbac: readonly Manifest[] = BINDINGS.map(([name, group, role]) => ({
  apiVersion: 'rbac.authorization.k8s.io/v1',
  kind: 'ClusterRoleBinding',
  metadata: { name },
  roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: role },
  subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'Group', name: group }],
}));
