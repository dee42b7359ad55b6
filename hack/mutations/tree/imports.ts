import { globSync, readFileSync } from 'node:fs';
import path from 'node:path';

import { parseSync } from 'oxc-parser';

/** Where unit tests are, as jest.config.js has it. */
const UNIT_TESTS = /^(cmd|pkg|packages|hack|test\/expect)\/.*\.test\.ts$/;

/** Which file imports which, at run time. */
export class Imports {
  /** By file, the files that import it. */
  readonly #importers = new Map<string, string[]>();

  constructor(imported: ReadonlyMap<string, readonly string[]>) {
    for (const [importer, files] of imported) {
      for (const file of files) this.#importers.set(file, [...(this.#importers.get(file) ?? []), importer]);
    }
  }

  /**
   * The unit tests that load a file: the one of its name first, then the fewer files lie between the earlier. Those of its folder count as
   * half as far: some are written for it and load it through a world.
   */
  unitTestsOf(file: string): readonly string[] {
    const tests = [...this.#distances(file)].filter(([one]) => UNIT_TESTS.test(one));
    const own = file.replace(/\.ts$/, '.test.ts');
    const rankOf = ([test, distance]: [string, number]): number => {
      if (test === own) return 0;
      return path.dirname(test) === path.dirname(file) ? distance / 2 : distance;
    };
    return tests.toSorted((a, b) => rankOf(a) - rankOf(b) || (a[0] < b[0] ? -1 : 1)).map(([test]) => test);
  }

  #distances(file: string): ReadonlyMap<string, number> {
    const distances = new Map([[file, 0]]);
    for (const [one, distance] of distances) {
      for (const importer of this.#importers.get(one) ?? []) {
        if (!distances.has(importer)) distances.set(importer, distance + 1);
      }
    }
    return distances;
  }
}

/** The imports of all sources and tests of a checkout. */
export function readImports(root: string): Imports {
  const files = globSync('{cmd,pkg,hack,test,packages}/**/*.ts', { cwd: root, exclude: ['**/node_modules/**'] });
  return new Imports(new Map(files.map((file) => [file, importsOf(root, file)])));
}

function importsOf(root: string, file: string): readonly string[] {
  const source = readFileSync(path.join(root, file), 'utf8');
  const { module } = parseSync(file, source);
  const imported = module.staticImports
    .filter(({ entries }) => entries.length === 0 || entries.some(({ isType }) => !isType))
    .map(({ moduleRequest }) => moduleRequest.value);
  const given = module.staticExports
    .flatMap(({ entries }) => entries.filter(({ isType }) => !isType))
    .map(({ moduleRequest }) => moduleRequest?.value ?? '');
  const later = module.dynamicImports.map(({ moduleRequest: { start, end } }) => source.slice(start + 1, end - 1));
  return [...imported, ...given, ...later]
    .filter((name) => name.startsWith('.'))
    .map((name) => path.join(path.dirname(file), name));
}
