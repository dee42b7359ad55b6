import type { KubeObject } from '../../../pkg/apis/meta.ts';
import { SystemClock } from '../../../pkg/base/clock/system-clock.ts';
import { keepAliveDuring } from '../../../pkg/base/clock/keep-alive.ts';
import { contextNames } from '../../../pkg/kube/client/config.ts';
import { namespaces } from '../../../pkg/kube/client/resource.ts';
import type { Resource } from '../../../pkg/apis/resource.ts';
import { CommandCluster } from '../command-cluster.ts';
import type { ClusterOptions } from '../options.ts';
import type { Lookup } from './complete.ts';

/** Who presses Tab does not wait for longer. */
const PATIENCE_MS = 2_000;

/** Asks the cluster and the kubeconfig of whoever types. */
export function liveLookup(env: Readonly<Record<string, string | undefined>>): Lookup {
  const list = async (resource: Resource<KubeObject>, access: ClusterOptions): Promise<string[]> => {
    const options = { ...access, requestTimeout: PATIENCE_MS, env, command: 'completion' };
    return await orNothing(async () => {
      await using cluster = await CommandCluster.open(options);
      const { namespace } = cluster;
      const { items } = await cluster.reader.list(resource, {
        ...(resource.namespaced ? { namespace } : {}),
        metadataOnly: true,
      });
      return items.map(({ metadata }) => metadata.name);
    });
  };
  return {
    names: ({ resource }, access) => list(resource, access),
    namespaces: (access) => list(namespaces, access),
    contexts: ({ kubeconfig = '' }) =>
      orNothing(async () => [...(await contextNames({ kubeconfig, env, clock: new SystemClock() }))]),
  };
}

/** A completion that fails says nothing: its complaint would stand in the middle of what is typed. */
async function orNothing(ask: () => Promise<string[]>): Promise<string[]> {
  return await keepAliveDuring(ask).catch(() => []);
}
