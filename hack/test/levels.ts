/** A level of tests: what it needs decides what is started before it. */
export interface Level {
  readonly name: 'unit' | 'integration' | 'faults' | 'e2e';
  /** Path patterns given to jest. */
  readonly paths: readonly string[];
  /** Whether a real control plane must be built first. */
  readonly needsControlPlane: boolean;
  /**
   * Files that run side by side; jest's choice (one fewer than cores) unless told. Tests mostly wait: so many keep both cores of a
   * small machine busy. More would starve each other, since faults bring servers and processes of their own.
   */
  readonly workers?: number;
}

/** In the order in which they run: cheap ones first, so that a plain mistake is seen at once. */
export const LEVELS: readonly Level[] = [
  { name: 'unit', paths: ['<rootDir>/(cmd|pkg|hack)/'], needsControlPlane: false },
  { name: 'integration', paths: ['<rootDir>/test/integration/'], needsControlPlane: true, workers: 3 },
  { name: 'faults', paths: ['<rootDir>/test/faults/'], needsControlPlane: true, workers: 2 },
  { name: 'e2e', paths: ['<rootDir>/test/e2e/'], needsControlPlane: true, workers: 2 },
];
