import { jest } from '@jest/globals';

/** Loaded before each test file: jest's 5 s are made for a host that nobody shares. It ends what hangs, and measures nothing. */
jest.setTimeout(300_000);
