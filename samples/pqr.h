/* Reads PQR files, which pdb2pqr writes for APBS: positions and radii in Angstrom, charges in e. */
#ifndef PQR_H
#define PQR_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct atom { double r[3], charge, radius; };
struct molecule {
    int atoms;
    struct atom *atom;
    double charge, low[3], high[3];     /* total charge; box around the centres of the atoms */
    double middle[3];                   /* of the charges, whatever their sign */
};

/* The points first + i h; indices -1 and n are on the sides of a box. */
struct grid { int n[3]; double first[3], h[3]; };

/* A line with five numbers at its end: x y z charge radius. What stands before them varies. */
static inline int pqr_line(char *line, struct atom *atom)
{
    char *word[32], *end;
    double value[5];
    int words = 0;
    for (char *w = strtok(line, " \t\r\n"); w && words < 32; w = strtok(NULL, " \t\r\n"))
        word[words++] = w;
    if (words < 8) return 0;
    for (int m = 0; m < 5; m++) {
        value[m] = strtod(word[words - 5 + m], &end);
        if (*end || !isfinite(value[m])) return 0;
    }
    *atom = (struct atom){{value[0], value[1], value[2]}, value[3], value[4]};
    return 1;
}

static inline double pqr_distance(const struct atom *atom, const double x[3])
{
    const double d[3] = {x[0] - atom->r[0], x[1] - atom->r[1], x[2] - atom->r[2]};
    return sqrt(d[0] * d[0] + d[1] * d[1] + d[2] * d[2]);
}

/* How far x is from the surface of the molecule, negative within; rounded where spheres of its atoms meet. */
static inline double pqr_surface(const struct molecule *molecule, const double x[3])
{
    const double rounding = 0.15;
    double near = 0;
    for (int m = 0; m < molecule->atoms; m++)
        near += exp((molecule->atom[m].radius - pqr_distance(&molecule->atom[m], x)) / rounding);
    return -rounding * log(near);
}

/* Fills in what the atoms tell of the whole. */
static inline void pqr_measure(struct molecule *molecule)
{
    double weight = 0, charge = 0;
    for (int m = 0; m < molecule->atoms; m++) {
        const struct atom *atom = &molecule->atom[m];
        const double share = fabs(atom->charge) + 1e-9;     /* a molecule without charges has a middle too */
        charge += atom->charge;
        weight += share;
        for (int a = 0; a < 3; a++) {
            molecule->low[a] = m ? fmin(molecule->low[a], atom->r[a]) : atom->r[a];
            molecule->high[a] = m ? fmax(molecule->high[a], atom->r[a]) : atom->r[a];
            molecule->middle[a] += share * atom->r[a];
        }
    }
    for (int a = 0; a < 3; a++) molecule->middle[a] /= weight;
    molecule->charge = round(charge * 1e6) / 1e6 + 0;       /* files have fewer digits; never -0 */
}

/* Ends the program with a message where the file is not a PQR file. The caller frees the atoms. */
static inline struct molecule pqr_read(const char *path)
{
    struct molecule molecule = {0};
    char line[512];
    const char *wrong = NULL;
    int number = 0;
    FILE *file = fopen(path, "r");
    if (!file) wrong = "cannot be opened";
    while (!wrong && fgets(line, sizeof line, file)) {
        number++;
        if (strncmp(line, "ATOM", 4) && strncmp(line, "HETATM", 6)) continue;
        struct atom *more = realloc(molecule.atom, (molecule.atoms + 1) * sizeof *more);
        if (more) molecule.atom = more;
        if (!more) wrong = "no memory";
        else if (!pqr_line(line, &more[molecule.atoms++])) wrong = "the line must end in x y z charge radius";
    }
    if (!wrong && molecule.atoms == 0) wrong = "no line begins with ATOM or HETATM";
    if (file) fclose(file);
    if (wrong) {
        fprintf(stderr, "%s:%d: %s\n", path, number, wrong);
        exit(2);
    }
    pqr_measure(&molecule);
    return molecule;
}

/* The box around the molecule with a margin, in cells of at most this spacing, each cut in refine parts. */
static inline struct grid pqr_grid(const struct molecule *molecule, double margin, double spacing, int refine)
{
    struct grid g;
    for (int a = 0; a < 3; a++) {
        const double low = molecule->low[a] - margin, length = molecule->high[a] + margin - low;
        const int cells = refine * (int)ceil(length / spacing);
        g.n[a] = cells - 1;
        g.h[a] = length / cells;
        g.first[a] = low + g.h[a];
    }
    return g;
}

#endif
