import type { FlagSection } from '../../../operator/config/flag-section.ts';
import { bool, list, text } from '../../../operator/config/flag.ts';
import { FlagError } from '../../../operator/config/flag-error.ts';
import type { ValueReader } from '../../../operator/config/value-reader.ts';
import { MACHINE_LEASE } from '../../../kube/leader/names.ts';

export interface ClusterAPISettings {
  /** Only Machines and Clusters with this value of the label are looked after; empty: all. */
  readonly watchFilter: string;
  /** They are looked after in all namespaces, not only in that of our Machines. */
  readonly isEverywhere: boolean;
  /** What Nodes are given of Machines beside what their domains say, by key. */
  readonly synced: { readonly labels: readonly RegExp[]; readonly annotations: readonly RegExp[] };
}

export const CLUSTER_API_FLAGS: FlagSection<ClusterAPISettings> = {
  heading: 'Cluster API',
  flags: {
    'cluster-api-watch-filter': text(
      'For controller cluster-api: reconcile only Machines and Clusters of cluster.x-k8s.io whose label cluster.x-k8s.io/watch-filter has this value. If empty, all in the namespace are reconciled.',
    ),
    'cluster-api-all-namespaces': bool(
      'For controller cluster-api: reconcile Machines and Clusters of cluster.x-k8s.io in all namespaces instead of --namespace. Requires deploy/rbac/cluster-api-all-namespaces.yaml.',
      { default: 'false' },
    ),
    'additional-sync-machine-labels': list(
      'With controller cluster-api: labels of Machines of cluster.x-k8s.io that their Nodes get too, beside those of the domains of Cluster API: regular expressions, of which one has to match a part of the key.',
    ),
    'additional-sync-machine-annotations': list('The same of annotations.'),
  },
  leases: [{ lease: MACHINE_LEASE, needed: [], optional: ['cluster-api'] }],
  notInCells: ({ isEverywhere }, controllers) =>
    controllers.has('cluster-api') && isEverywhere
      ? '--cluster-api-all-namespaces is not supported with --cells, which selects the namespaces; remove one of them'
      : undefined,
  settings: (read) => ({
    watchFilter: read.text('cluster-api-watch-filter'),
    isEverywhere: read.bool('cluster-api-all-namespaces'),
    synced: {
      labels: patternsIn(read, 'additional-sync-machine-labels'),
      annotations: patternsIn(read, 'additional-sync-machine-annotations'),
    },
  }),
};

/** Regular expressions. Throws FlagError. */
function patternsIn(read: ValueReader, name: string): readonly RegExp[] {
  return read.list(name).map((pattern) => {
    try {
      return new RegExp(pattern, 'u');
    } catch (err) {
      throw new FlagError(`--${name}: ${pattern} is no regular expression: ${(err as Error).message}`);
    }
  });
}
