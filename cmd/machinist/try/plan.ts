import type { KubeObject } from '../../../pkg/apis/meta.ts';
import { DEFINITIONS, isMarked, NAMESPACE } from './objects.ts';

/** What the command finds in a cluster. */
export interface Found {
  readonly namespace: KubeObject | undefined;
  /** Those of our kinds. */
  readonly definitions: readonly KubeObject[];
  /** Objects of our kinds in other namespaces, as KIND NAMESPACE/NAME. */
  readonly foreign: readonly string[];
  /** What shows that a manager for our kinds works, or has worked, in another namespace, as KIND NAMESPACE/NAME. */
  readonly managers: readonly string[];
}

/** What is to be created, or one sentence why nothing may be. */
export type Plan =
  | { readonly kind: 'refuse'; readonly why: string }
  | { readonly kind: 'create'; readonly definitions: readonly string[]; readonly isResumed: boolean };

/** A cluster that is managed already, by Machinist or machine-controller-manager, is left alone. */
export function planOf({ namespace, definitions, foreign }: Found): Plan {
  if (foreign.length > 0) {
    return refuse(
      `the cluster already has ${foreign.slice(0, 3).join(', ')}${foreign.length > 3 ? ` and ${foreign.length - 3} more` : ''}, which Machinist or machine-controller-manager may manage; use another cluster`,
    );
  }
  if (namespace !== undefined && !isMarked(namespace)) {
    return refuse(`namespace ${NAMESPACE} exists, and machinist try has not created it; delete or rename it`);
  }
  if (namespace?.metadata.deletionTimestamp !== undefined) {
    return refuse(`namespace ${NAMESPACE} is still being deleted; run machinist try --undo, or wait`);
  }
  const present = definitions.map(({ metadata }) => metadata.name);
  const missing = DEFINITIONS.filter((name) => !present.includes(name));
  return { kind: 'create', definitions: missing, isResumed: namespace !== undefined };
}

function refuse(why: string): Plan {
  return { kind: 'refuse', why };
}

/** What an undo does with the definitions of our kinds, by name. */
export interface UndoPlan {
  readonly removed: readonly KubeObject[];
  /** Each with the reason. */
  readonly kept: ReadonlyMap<string, string>;
}

/** Definitions go only if the command has created them, nobody else has changed them since, and nobody else needs them. */
export function undoOf({ definitions, foreign, managers }: Omit<Found, 'namespace'>): UndoPlan {
  const kept = new Map<string, string>();
  const removed: KubeObject[] = [];
  for (const definition of definitions) {
    const why = whyKept(definition, [...foreign, ...managers]);
    if (why === undefined) removed.push(definition);
    else kept.set(definition.metadata.name, why);
  }
  return { removed, kept };
}

function whyKept(definition: KubeObject, users: readonly string[]): string | undefined {
  if (!isMarked(definition)) return 'it existed before';
  if (users.length > 0) return `${users[0]} exists`;
  const other = otherManagersOf(definition)[0];
  return other === undefined ? undefined : `${other} has changed it since`;
}

/** Who else has written an object; the API server itself keeps the status of definitions. */
function otherManagersOf({ metadata }: KubeObject): readonly string[] {
  const { managedFields = [] } = metadata as { readonly managedFields?: readonly { readonly manager?: string }[] };
  return managedFields.flatMap(({ manager = '' }) =>
    ['machinist', 'kube-apiserver'].includes(manager) ? [] : [manager],
  );
}

/** Clusters of these tools are on this host, even if their address is not. */
const LOCAL_CONTEXTS = /^(?:kind-|k3d-|minikube$|minikube-|docker-desktop$|rancher-desktop$|colima)/;
const LOCAL_HOSTS =
  /^(?:localhost|127(?:\.\d+){3}|0\.0\.0\.0|\[::1\]|host\.docker\.internal|kubernetes\.docker\.internal)$/;

/** Whether a cluster is on this host, by its address or the name that a tool gives its contexts. */
export function isLocal(context: string, server: string): boolean {
  return LOCAL_HOSTS.test(new URL(server).hostname) || LOCAL_CONTEXTS.test(context);
}
