import type { MachineClass } from '../../../pkg/apis/machine/v1alpha1/machine-class.ts';
import type { Reader } from '../../../pkg/kube/client/client.ts';
import { machineClasses, secrets } from '../../../pkg/kube/client/resource.ts';
import { secretIndex } from '../../../pkg/operator/indexes/secret-references.ts';
import { find, TIMEOUT_MS, unlessAbsent } from './ask.ts';
import { classFindings, type Finding, type QueryResult } from './findings.ts';

/** Whether the classes of a namespace have their Secrets, and a driver among these providers. */
export async function lookAtClasses(
  reader: Reader,
  namespace: string,
  providers: readonly string[],
): Promise<readonly Finding[]> {
  const limits = { timeoutMs: TIMEOUT_MS };
  const classes = await find<readonly MachineClass[]>(
    async () => (await reader.list(machineClasses, { namespace, ...limits })).items,
  );
  const keys = new Set('value' in classes ? classes.value.flatMap(secretIndex) : []);
  const states = new Map<string, QueryResult<boolean>>();
  for (const key of keys) {
    const [at = '', name = ''] = key.split('/');
    // Without their content, which is nobody's business here.
    const get = () => unlessAbsent(reader.get(secrets, { namespace: at, name }, { metadataOnly: true, ...limits }));
    states.set(key, await find(async () => (await get()) !== undefined));
  }
  return classFindings(classes, states, providers);
}
