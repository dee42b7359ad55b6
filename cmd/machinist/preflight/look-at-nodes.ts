import { nodeNameOf, showsNode } from '../../../pkg/apis/machine/v1alpha1/defaults.ts';
import { isBeingDeleted } from '../../../pkg/apis/meta.ts';
import type { Node } from '../../../pkg/apis/wire.ts';
import type { Reader } from '../../../pkg/kube/client/client.ts';
import { machines, nodes } from '../../../pkg/kube/client/resource.ts';
import { whereNodesAre } from '../../../pkg/operator/cells/nodes-of-cell.ts';
import { find, TIMEOUT_MS, unlessAbsent } from './ask.ts';
import { type Finding, missingNodesFinding } from './findings.ts';

/** So many Nodes are asked for at once. */
const AT_ONCE = 10;

/** Whether the target is the cluster of the Machines of a namespace. That these, or Nodes, cannot be read is said of the permissions. */
export async function lookAtNodes(
  control: Pick<Reader, 'list'>,
  target: Pick<Reader, 'get'>,
  namespace: string,
): Promise<readonly Finding[]> {
  const limits = { timeoutMs: TIMEOUT_MS };
  const found = await find(async () => (await control.list(machines, { namespace, ...limits })).items);
  const joined = 'value' in found ? found.value.filter(showsNode) : [];
  for (let i = 0; i < joined.length; i += AT_ONCE) {
    const some = joined.slice(i, i + AT_ONCE);
    const read = await find(() =>
      Promise.all(
        some.map((one) =>
          unlessAbsent<Node>(target.get(nodes, { name: nodeNameOf(one) || one.metadata.name }, limits)),
        ),
      ),
    );
    if ('error' in read) return [];
    const byName = new Map(read.value.flatMap((node) => (node === undefined ? [] : [[node.metadata.name, node]])));
    if (whereNodesAre(some, byName) === 'here') return [];
  }
  const finding = missingNodesFinding(namespace, joined.filter((one) => !isBeingDeleted(one)).length);
  return finding === undefined ? [] : [finding];
}
