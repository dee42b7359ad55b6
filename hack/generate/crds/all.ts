import { WORLDS } from '../worlds/index.ts';
import { customResourceDefinition, fileName, toYaml } from './definition.ts';
import { machine } from './machine.ts';
import { machineClass } from './machine-class.ts';
import { machineDeployment } from './machine-deployment.ts';
import { machineSet } from './machine-set.ts';
import { nodeLabelPolicy } from './node-label-policy.ts';
import { withoutAdditions } from './original.ts';

/** The original's kinds, in the order of the documentation. */
const ORIGINALS = [machineDeployment, machineSet, machine, machineClass];

/** All kinds that are installed: those, and ours. */
export const DEFINITIONS = [...ORIGINALS, nodeLabelPolicy];

/** Files by path: the CRDs, and the same without our additions, for tests of what the original has stored. */
export function crdFiles(): Map<string, string> {
  const files = new Map<string, string>();
  for (const definition of [...DEFINITIONS, ...WORLDS.flatMap(({ definitions }) => definitions)]) {
    const crd = customResourceDefinition(definition);
    files.set(`crds/${fileName(definition)}`, toYaml(crd));
    if (!ORIGINALS.includes(definition)) continue;
    files.set(`test/crds-original/${fileName(definition)}`, toYaml(withoutAdditions(crd) as object));
  }
  return files;
}
