import { type Cluster, isUsable, occupied, pendingAmong } from './cluster.ts';
import { placeAll } from './placement.ts';

/**
 * Binds each pending pod to a ready node that has room, once: what kube-scheduler does in a cluster. Returns how many found none.
 */
export async function schedule(cluster: Cluster): Promise<number> {
  const pods = await cluster.pods();
  const pending = pendingAmong(pods);
  if (pending.length === 0) return 0;
  const places = (await cluster.nodes()).filter(isUsable).map((node) => occupied(node, pods).place);
  const { placed, left } = placeAll(pending, places);
  for (const pod of pending) {
    const nodeName = placed.get(pod.metadata.uid);
    if (nodeName !== undefined) await cluster.bind(pod, nodeName);
  }
  return left.length;
}
