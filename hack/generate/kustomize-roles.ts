import { readFile } from 'node:fs/promises';
import path from 'node:path';

const ROOT = path.resolve(import.meta.dirname, '../..');

/** Which files of deploy/rbac each folder of deploy needs, when the control cluster is the target as well; of cells it is none. */
const ROLES_OF = {
  'layouts/one-process': ['control', 'control-identity', 'target'],
  'layouts/split': ['control-manager', 'control-machine-controller', 'control-identity', 'target-manager', 'target'],
  'layouts/two-namespaces': ['machines', 'control-identity', 'target'],
  'layouts/cells': ['cells', 'control-identity'],
  'layouts/named-cells': ['named-cells', 'cell', 'control-identity'],
  'layouts/beside-provider': ['control-manager', 'target-manager'],
  'drivers/sim': ['sim-driver'],
  'drivers/kwok': ['kwok-driver'],
  'drivers/cluster-api': ['cluster-api-driver'],
} as const;

/** The roles of each layout beside its kustomization: kustomize reads no file outside of its folder. `generated`: those that are written, too. */
export async function kustomizeRoles(generated: ReadonlyMap<string, string>): Promise<[file: string, text: string][]> {
  return Promise.all(
    Object.entries(ROLES_OF).map(async ([folder, names]): Promise<[string, string]> => {
      const files = names.map((name) => `deploy/rbac/${name}.yaml`);
      const texts = await Promise.all(
        files.map(async (file) => generated.get(file) ?? readFile(path.join(ROOT, file), 'utf8')),
      );
      const header = `# Generated from ${files.join(', ')}.\n`;
      return [`deploy/${folder}/rbac.yaml`, header + texts.join('---\n')];
    }),
  );
}
