import { existsSync, readFileSync } from 'node:fs';
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

  /** Reads all that a `tsconfig.json` at or below `root` names, once, when a file of it is asked about. */
  constructor(root: string) {
    this.#root = root;
    this.#api = new API({ cwd: root, fs: { readFile: (file) => this.#changed.get(file) } });
    this.#snapshot = this.#api.updateSnapshot();
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
    const config = this.#configOf(path.dirname(file));
    this.#snapshot = this.#api.updateSnapshot({ openProjects: [config], fileChanges: { changed: [file] } });
    before.dispose();
    const project = this.#snapshot.getProject(config);
    if (project === undefined) throw new Error(`no project of ${file}`);
    return project.program
      .getSemanticDiagnostics(file)
      .some(({ category, reportsUnnecessary }) => category === DiagnosticCategory.Error && reportsUnnecessary !== true);
  }

  /** The nearest one, as editors choose it. What browsers run has its own. */
  #configOf(folder: string): string {
    const config = path.join(folder, 'tsconfig.json');
    return folder === this.#root || existsSync(config) ? config : this.#configOf(path.dirname(folder));
  }

  [Symbol.dispose](): void {
    this.#snapshot.dispose();
    this.#api.close();
  }
}
