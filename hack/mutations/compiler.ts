import { readFileSync } from 'node:fs';
import path from 'node:path';

import { API, DiagnosticCategory } from 'typescript/unstable/sync';

import { apply, type Edit } from './tree/edit.ts';

/** Says which changes the compiler refuses: nobody can commit them, so that no test has to notice them. */
export class Compiler implements Disposable {
  readonly #root: string;
  /** What the compiler reads in place of a file, by path. */
  readonly #changed = new Map<string, string>();
  readonly #api: API;
  #snapshot: ReturnType<API['updateSnapshot']>;

  /** Reads all that `tsconfig.json` at `root` names, once. */
  constructor(root: string) {
    this.#root = root;
    this.#api = new API({ cwd: root, fs: { readFile: (file) => this.#changed.get(file) } });
    this.#snapshot = this.#api.updateSnapshot({ openProjects: [path.join(root, 'tsconfig.json')] });
  }

  /** Whether the file, from `root`, does not compile with the change. What is left unused by it does not count. */
  refuses(file: string, edit: Edit): boolean {
    const full = path.join(this.#root, file);
    this.#changed.set(full, apply(readFileSync(full, 'utf8'), edit));
    try {
      return this.#errorsIn(full);
    } finally {
      this.#changed.delete(full);
    }
  }

  #errorsIn(file: string): boolean {
    const before = this.#snapshot;
    this.#snapshot = this.#api.updateSnapshot({ fileChanges: { changed: [file] } });
    before.dispose();
    const [project] = this.#snapshot.getProjects();
    if (project === undefined) throw new Error(`no project of ${file}`);
    return project.program
      .getSemanticDiagnostics(file)
      .some(({ category, reportsUnnecessary }) => category === DiagnosticCategory.Error && reportsUnnecessary !== true);
  }

  [Symbol.dispose](): void {
    this.#snapshot.dispose();
    this.#api.close();
  }
}
