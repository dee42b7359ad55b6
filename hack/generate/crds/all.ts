import { customResourceDefinition, fileName, toYaml } from './definition.ts';
import { machine } from './machine.ts';
import { machineClass } from './machine-class.ts';
import { machineDeployment } from './machine-deployment.ts';
import { machineSet } from './machine-set.ts';
import { withoutAdditions } from './original.ts';

/** The four kinds, in the order of the documentation. */
export const DEFINITIONS = [machineDeployment, machineSet, machine, machineClass];

/** Files by path: the CRDs, and the same without our additions, for tests of what the original has stored. */
export function crdFiles(): Map<string, string> {
  const files = new Map<string, string>();
  for (const definition of DEFINITIONS) {
    const crd = customResourceDefinition(definition);
    files.set(`crds/${fileName(definition)}`, toYaml(crd));
    files.set(`test/crds-original/${fileName(definition)}`, toYaml(withoutAdditions(crd) as object));
  }
  return files;
}
